-- MCP servers that a tenant set up before. `definition` is what is shown of one; json, not jsonb, because order and bytes count.
-- `secrets` is sealed: the token and the headers, never shown again.
create table connectors (
    id         text        not null,
    tenant_id  text        not null,
    owner      text        not null,
    label      text        not null,
    created_at timestamptz not null,
    definition json        not null,
    secrets    text        not null,
    constraint connectors_id_key primary key (id),
    constraint connectors_label_key unique (tenant_id, label)
);

create index connectors_by_tenant on connectors (tenant_id, created_at, id);

-- Approvals that were asked for. Each is good for one use. What is approved stands there only as a digest of server, tool and arguments:
-- the arguments come back with the request that approves.
create table approvals (
    id         text        not null,
    tenant_id  text        not null,
    digest     bytea       not null,
    created_at timestamptz not null,
    used_at    timestamptz,
    constraint approvals_id_key primary key (tenant_id, id)
);

create index approvals_by_time on approvals (created_at);
