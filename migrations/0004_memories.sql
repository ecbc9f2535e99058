-- What is remembered about users: short facts that later Responses of the same user are told.
create table memories (
    id         text        not null,
    tenant_id  text        not null,
    owner      text        not null,
    text       text        not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint memories_id_key primary key (id)
);

-- A fact is remembered once. By its digest, for a key of an index may not be as long as a text.
create unique index memories_text_key on memories (tenant_id, owner, md5(text));

create index memories_by_owner on memories (tenant_id, owner, created_at, id);
