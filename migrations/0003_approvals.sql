-- Calls that wait for the client's consent. What it is asked for stands in `digest` (server, tool, arguments); the arguments themselves are the
-- client's to bring back. An approval counts once: `used_at`.
create table approvals (
    tenant_id  text        not null,
    id         text        not null,
    digest     bytea       not null,
    created_at timestamptz not null,
    used_at    timestamptz,
    constraint approvals_key primary key (tenant_id, id)
);

create index approvals_by_time on approvals (created_at);
