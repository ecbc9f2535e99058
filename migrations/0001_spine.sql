-- Who may ask. The key itself is never stored: `hash` finds it, `prefix` (its first 8 characters) lets a person tell keys apart in a list.
create table api_keys (
    id         text        not null,
    tenant_id  text        not null,
    user_id    text        not null,
    groups     text[]      not null,
    name       text        not null,
    hash       bytea       not null,
    prefix     text        not null,
    delegate   boolean     not null,
    created_at timestamptz not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    constraint api_keys_id_key primary key (id),
    constraint api_keys_hash_key unique (hash)
);

create index api_keys_by_tenant on api_keys (tenant_id, created_at, id);
