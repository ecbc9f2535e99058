-- Conversations. The lock is a lease: `locked_by` names the Response that writes into it until `locked_until`.
create table conversations (
    id           text        not null,
    tenant_id    text        not null,
    owner        text        not null,
    created_at   timestamptz not null,
    metadata     json        not null,
    locked_by    text,
    locked_until timestamptz,
    constraint conversations_id_key primary key (id)
);

create index conversations_by_tenant on conversations (tenant_id, created_at, id);

-- Responses that have ended. What a request asked for stands in `settings` as the API echoes it; json, not jsonb, because order and bytes count.
-- A deleted one (`deleted_at`) is invisible at once and stays only as long as a living descendant needs its items.
create table responses (
    id                   text        not null,
    tenant_id            text        not null,
    owner                text        not null,
    previous_response_id text,
    conversation_id      text,
    status               text        not null,
    created_at           timestamptz not null,
    completed_at         timestamptz,
    settings             json        not null,
    error                json,
    incomplete_reason    text,
    usage                json,
    deleted_at           timestamptz,
    constraint responses_id_key primary key (id),
    constraint responses_previous_fkey foreign key (previous_response_id) references responses (id)
);

create index responses_by_tenant on responses (tenant_id, created_at, id) where deleted_at is null;
create index responses_by_previous on responses (previous_response_id) where previous_response_id is not null;

-- Items, stored once. An item may belong to a Response (as its input or its output), to a conversation, or to both. `seq` gives the order in either.
-- `data` is what the item's backend wants back; it is never shown.
create table items (
    seq             bigint  generated always as identity,
    tenant_id       text    not null,
    response_id     text,
    conversation_id text,
    id              text    not null,
    output          boolean not null,
    item            json    not null,
    data            json,
    constraint items_seq_key primary key (seq),
    constraint items_response_fkey foreign key (response_id) references responses (id) on delete cascade,
    constraint items_conversation_fkey foreign key (conversation_id) references conversations (id)
);

create index items_by_response on items (response_id, seq) where response_id is not null;
create index items_by_conversation on items (conversation_id, seq) where conversation_id is not null;
create index items_by_id on items (tenant_id, id);

-- Requests that a client marked with an Idempotency-Key. `body` is the Response once it has ended.
create table idempotency (
    tenant_id   text        not null,
    key         text        not null,
    digest      bytea       not null,
    created_at  timestamptz not null,
    response_id text        not null,
    body        json,
    constraint idempotency_key primary key (tenant_id, key)
);

create index idempotency_by_time on idempotency (created_at);
create index idempotency_by_response on idempotency (response_id);
