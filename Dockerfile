# syntax=docker/dockerfile:1

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist --bin antiphon \
    && cp target/dist/antiphon /usr/local/bin/antiphon

FROM debian:bookworm-slim
# Roots of trust for upstreams behind TLS; curl for the health check.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --user-group --create-home --home-dir /var/lib/antiphon antiphon
COPY --from=build /usr/local/bin/antiphon /usr/local/bin/antiphon
USER antiphon
# An antiphon.toml here is read; the private Postgres, if there is no DATABASE_URL, lives here too.
WORKDIR /var/lib/antiphon
VOLUME /var/lib/antiphon
ENV ANTIPHON_LISTEN=0.0.0.0:8090 \
    ANTIPHON_DATA_DIR=/var/lib/antiphon
EXPOSE 8090
# The first start may have to prepare its database.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD curl --fail --silent --output /dev/null http://127.0.0.1:8090/readyz
ENTRYPOINT ["antiphon"]
CMD ["serve"]
