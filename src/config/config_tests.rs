use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use pretty_assertions::assert_eq;
use toml::{Table, Value};

use super::*;

fn load(text: &str, env: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    Sources::new(&env.iter().copied().collect()).load_text(Path::new("antiphon.toml"), text)
}

fn config(text: &str, env: &[(&str, &str)]) -> Config {
    load(text, env).unwrap().config
}

fn error(text: &str, env: &[(&str, &str)]) -> String {
    let error = load(text, env).expect_err("the configuration is bad").to_string();
    error.strip_prefix("the configuration cannot be used:\n  ").unwrap().to_owned()
}

/// What the default file's commented keys name.
const SECRETS: &[(&str, &str)] = &[("EXAMPLE_API_KEY", "k")];

/// The default file with its commented keys taken in.
fn everything() -> String {
    DEFAULT_TOML
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(key) if key.starts_with(|c: char| c == '[' || c.is_ascii_lowercase()) => key,
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_default_file_is_the_default() {
    let expected = format!("{:#?}", Config::default());
    assert_eq!(format!("{:#?}", config(DEFAULT_TOML, &[])), expected);
    assert_eq!(format!("{:#?}", config("", &[])), expected);
}

#[test]
fn the_default_file_has_every_key() {
    load(&everything(), SECRETS).unwrap();
    let table: Table = everything().parse().unwrap();
    let mut in_file = BTreeSet::new();
    leaves("", &Value::Table(table), &mut in_file);
    // The file lists these once, under [[models.overrides]], and says so.
    in_file.extend(DialectOverrides::KEYS.map(|key| format!("upstreams[].{key}")));

    let mut in_code = BTreeSet::new();
    keys_of_code(&[], &mut in_code);
    assert!(
        in_code.contains("upstreams[].think_tags") && in_code.contains("auth.oidc.issuer"),
        "{in_code:?}"
    );
    assert_eq!(in_file, in_code);
}

/// Asks the code which keys it knows: a key that cannot be is refused with the list of those that can.
fn keys_of_code(at: &[&str], out: &mut BTreeSet<String>) {
    const PROBE: &str = "no_such_key";
    if at == ["mcp", "connectors"] {
        // The names are the user's own; this one stands in the file.
        return keys_of_code(&["mcp", "connectors", "github"], out);
    }
    let in_entry = [at, &["0"]].concat();
    // Where entries have names of the user's own, the default file calls one `example`.
    let in_example = [at, &["example"]].concat();
    for at in [at, in_entry.as_slice(), in_example.as_slice()] {
        let key = [at, &[PROBE]].concat().join("__").to_uppercase();
        let Err(error) = load("", &[(&format!("ANTIPHON_{key}"), "true")]) else { continue };
        if error.problems[0].message.starts_with("there is no such key") {
            for name in &error.problems[0].known {
                keys_of_code(&[at, &[name.as_str()]].concat(), out);
            }
            return;
        }
    }
    out.insert(at.join(".").replace(".0.", "[]."));
}

fn leaves(at: &str, value: &Value, out: &mut BTreeSet<String>) {
    match value {
        // These hold names of the user's own.
        Value::Table(table)
            if ![".aliases", ".headers", ".headers_env", ".env"]
                .iter()
                .any(|end| at.ends_with(end)) =>
        {
            for (key, value) in table {
                leaves(
                    &if at.is_empty() { key.clone() } else { format!("{at}.{key}") },
                    value,
                    out,
                );
            }
        }
        Value::Array(entries) if entries.first().is_some_and(Value::is_table) => {
            for entry in entries {
                leaves(&format!("{at}[]"), entry, out);
            }
        }
        _ => _ = out.insert(at.to_owned()),
    }
}

#[test]
fn commented_keys_show_their_defaults() {
    let minimal = "[[upstreams]]\nname = 'local'\nbase_url = 'http://127.0.0.1:8000/v1'\n\
                   [auth.oidc]\nissuer = 'https://login.example'\naudience = 'antiphon'\n\
                   [tools.openapi.credentials.example]\nvalue_env = 'EXAMPLE_API_KEY'\n\
                   hosts = ['api.example', 'api.example:8443']";
    let (shown, real) = (config(&everything(), SECRETS), config(minimal, SECRETS));
    assert_eq!(format!("{:?}", shown.auth), format!("{:?}", real.auth));
    assert_eq!(format!("{:?}", shown.tools.openapi), format!("{:?}", real.tools.openapi));
    let (shown, real) = (&shown.upstreams[0], &real.upstreams[0]);
    assert_eq!(
        (&shown.wire, &shown.dialect, format!("{:?}", shown.models), shown.weight),
        (&real.wire, &real.dialect, format!("{:?}", real.models), real.weight),
    );
}

#[test]
fn the_example_loads() {
    let text = include_str!("../../config/example.toml");
    let config = config(text, &[("OPENAI_API_KEY", "sk-1")]);
    let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    assert_eq!(names, ["vllm", "vllm-small", "ollama", "openai"]);
    assert_eq!(config.upstreams[3].api_key.as_ref().map(Secret::expose), Some("sk-1"));
    assert!(config.upstreams[0].models[0].is_match("Qwen/Qwen3-32B"));
    assert_eq!(config.models.overrides[0].overrides.think_tags, Some(ThinkTags::OpenAtStart));
}

#[test]
fn variables_override_the_file() {
    let file = "listen = '127.0.0.1:1'\n[http]\nping_seconds = 3\n[[upstreams]]\nname = 'a'\nbase_url = 'http://a/v1'";
    let config = config(
        file,
        &[
            ("ANTIPHON_LISTEN", "localhost:2"),
            ("ANTIPHON_DATA_DIR", "/srv/antiphon"),
            ("ANTIPHON_HTTP__PING_SECONDS", "4"),
            ("ANTIPHON_HTTP__CORS", r#"["https://a"]"#),
            ("ANTIPHON_AUTH__OPEN", "true"),
            ("ANTIPHON_MODELS__DEFAULT", "1e3"),
            ("ANTIPHON_UPSTREAMS__0__BASE_URL", "http://b/v1"),
            ("ANTIPHON_UPSTREAMS__0__ALIASES", r#"{ "gpt-4o" = "qwen3" }"#),
            ("ANTIPHON_UPSTREAMS__0__THINK_TAGS", "on"),
            ("ANTIPHON_UPSTREAMS__1__NAME", "true"),
            ("ANTIPHON_UPSTREAMS__1__BASE_URL", "http://c/v1/"),
        ],
    );
    assert_eq!(config.listen, "127.0.0.1:2".parse().unwrap());
    assert_eq!(config.data_dir.as_deref(), Some(Path::new("/srv/antiphon")));
    assert_eq!(config.http.ping.as_secs(), 4);
    assert_eq!(config.http.cors, ["https://a"]);
    assert!(config.auth.open);
    assert_eq!(
        config.models.default.as_deref(),
        Some("1e3"),
        "a number where a text belongs is that text"
    );
    let [a, c] = config.upstreams.as_slice() else { panic!("{:?}", config.upstreams) };
    assert_eq!((a.name.as_str(), a.base_url.as_str()), ("a", "http://b/v1"));
    assert_eq!(a.aliases["gpt-4o"], "qwen3");
    assert_eq!(a.overrides.think_tags, Some(ThinkTags::On));
    assert_eq!(c.name, "true");
    assert_eq!(c.endpoint("/chat/completions").as_str(), "http://c/v1/chat/completions");
}

#[test]
fn entries_are_set_in_the_order_of_their_numbers() {
    let env: Vec<(String, String)> = (0..12)
        .flat_map(|i| {
            let set = |key: &str, value: String| (format!("ANTIPHON_UPSTREAMS__{i}__{key}"), value);
            [set("NAME", format!("u{i}")), set("BASE_URL", format!("http://h{i}/v1"))]
        })
        .collect();
    let loaded = Sources::new(&env.into_iter().collect()).load_text(Path::new("x"), "").unwrap();
    let names: Vec<String> =
        loaded.config.upstreams.into_iter().map(|upstream| upstream.name).collect();
    assert_eq!(names, (0..12).map(|i| format!("u{i}")).collect::<Vec<_>>());
}

#[test]
fn usual_variables_fill_what_is_not_set() {
    let env = [
        ("DATABASE_URL", "postgres://db/x"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1"),
        ("OPENAI_API_KEY", "sk-1"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
        ("RUST_LOG", "debug"),
        ("ANTIPHON_SEAL_KEYS", "new, old"),
        ("ANTIPHON_BOOTSTRAP_KEY", "key"),
        ("ANTIPHON_PORT_8090_TCP", "tcp://10.0.0.1:8090"),
        ("ANTIPHON_SERVICE_HOST", "10.0.0.1"),
        ("HOME", "/home/ada"),
    ];
    let filled = config(DEFAULT_TOML, &env);
    assert_eq!(filled.database_url.as_ref().map(Secret::expose), Some("postgres://db/x"));
    assert_eq!(filled.upstreams[0].base_url.as_str(), "http://127.0.0.1:8000/v1");
    assert_eq!(filled.upstreams[0].api_key.as_ref().map(Secret::expose), Some("sk-1"));
    assert_eq!(filled.telemetry.otlp_endpoint.unwrap().as_str(), "http://127.0.0.1:4318/");
    assert_eq!(filled.log.filter, "debug");
    assert_eq!(filled.seal_keys.iter().map(Secret::expose).collect::<Vec<_>>(), ["new", "old"]);
    assert_eq!(filled.bootstrap_key.as_ref().map(Secret::expose), Some("key"));
    assert_eq!(filled.places.data_home.as_deref(), Some(Path::new("/home/ada/.local/share")));

    let file = "database_url = 'postgresql://own/x'\n[[upstreams]]\nname = 'own'\nbase_url = 'http://own'\n\
                [telemetry]\notlp_endpoint = 'http://own'";
    let own = config(file, &env);
    assert_eq!(own.database_url.as_ref().map(Secret::expose), Some("postgresql://own/x"));
    assert_eq!(own.upstreams.len(), 1);
    assert_eq!(own.upstreams[0].name, "own");
    assert_eq!(own.telemetry.otlp_endpoint.unwrap().as_str(), "http://own/");
}

/// File, variables, the problem.
type Case = (String, &'static [(&'static str, &'static str)], &'static str);

#[test]
fn errors_name_the_key_its_origin_and_what_would_be_right() {
    let upstream = "[[upstreams]]\nname = 'a'\nbase_url = 'http://a/v1'\n";
    let with = |more: &str| format!("{upstream}{more}");
    let cases: &[Case] = &[
        (
            "[http]\nping_secs = 3".into(),
            &[],
            "`http.ping_secs` (antiphon.toml): there is no such key; did you mean `ping_seconds`?",
        ),
        (
            String::new(),
            &[("ANTIPHON_HTPT__PING_SECONDS", "3")],
            "`htpt` (environment variable ANTIPHON_HTPT__PING_SECONDS): there is no such key; did you mean `http`?",
        ),
        (
            with("think_tag = 'on'"),
            &[],
            "`upstreams[0].think_tag` (antiphon.toml): there is no such key; did you mean `think_tags`?",
        ),
        (
            with("think_tags = 'yes'"),
            &[],
            "`upstreams[0].think_tags` (antiphon.toml): `yes` is not one of its values; there may be `off`, `on`, `open_at_start`",
        ),
        (
            String::new(),
            &[("ANTIPHON_ENGINE__MAX_ROUNDS", "many")],
            "`engine.max_rounds` (environment variable ANTIPHON_ENGINE__MAX_ROUNDS): \
             invalid type: string \"many\", expected a nonzero u32",
        ),
        (
            "[engine]\ntotal_seconds = 0".into(),
            &[],
            "`engine.total_seconds` (antiphon.toml): 0 seconds is out of range; the least is 1, the most 3153600000",
        ),
        (
            "listen = '8090'".into(),
            &[],
            "`listen` (antiphon.toml): `8090` is not an IP address with a port; \
             it should look like \"127.0.0.1:8090\" or \"0.0.0.0:8090\"",
        ),
        (
            String::new(),
            &[("ANTIPHON_UPSTREAMS__0__NAME", "a")],
            "`upstreams[0]` (environment variable ANTIPHON_UPSTREAMS__0__NAME): the key `base_url` is needed here",
        ),
        (
            String::new(),
            &[("ANTIPHON_UPSTREAMS__1__NAME", "a")],
            "`upstreams[1].name` (environment variable ANTIPHON_UPSTREAMS__1__NAME): \
             `upstreams` has 0 entries, so the next number is 0",
        ),
        (
            "listen = '127.0.0.1:1'".into(),
            &[("ANTIPHON_LISTEN__PORT", "1")],
            "`listen.port` (environment variable ANTIPHON_LISTEN__PORT): \
             `listen` is a single value, so nothing can be set inside of it",
        ),
        (
            upstream.into(),
            &[("ANTIPHON_UPSTREAMS__NAME", "b")],
            "`upstreams.name` (environment variable ANTIPHON_UPSTREAMS__NAME): \
             `upstreams` is a list, so its entries are set by number: UPSTREAMS__0__…",
        ),
        (
            with("models = ['[']"),
            &[],
            "`upstreams[0].models[0]` (antiphon.toml): not a pattern: error parsing glob '[': unclosed character class; missing ']'",
        ),
        (
            "[[upstreams]]\nname = 'a'\nbase_url = 'localhost:8000'".into(),
            &[],
            "`upstreams[0].base_url` (antiphon.toml): an address that begins with http:// or https:// is needed, not localhost:",
        ),
        (
            "[[upstreams]]\nname = 'a'\nbase_url = 'http://u:hunter2@a/v1'".into(),
            &[],
            "`upstreams[0].base_url` (antiphon.toml): an address with a user or a password is not taken; \
             keys are named by *_env keys",
        ),
        (
            with("api_key_env = 'MY_KEY'"),
            &[],
            "`upstreams[0].api_key_env` (antiphon.toml): the environment variable MY_KEY that it names is not set",
        ),
        (
            with("api_key_env = 'sk-abc'"),
            &[],
            "`upstreams[0].api_key_env` (antiphon.toml): the environment variable \
             [not shown: it does not look like a variable's name] that it names is not set",
        ),
        (
            with(upstream),
            &[],
            "`upstreams[1].name` (antiphon.toml): another upstream is called `a` already",
        ),
        (
            "[mcp.connectors.x]\ndescription = 'x'".into(),
            &[],
            "`mcp.connectors.x` (antiphon.toml): `url` or `command` is needed here",
        ),
        (
            "[mcp.connectors.x]\nurl = 'http://x'\ncommand = 'x'".into(),
            &[],
            "`mcp.connectors.x.command` (antiphon.toml): `url` is set too; a server has one of the two",
        ),
        (
            "[mcp.connectors.x]\nurl = 'file:///x'".into(),
            &[],
            "`mcp.connectors.x.url` (antiphon.toml): an address that begins with http:// or https:// is needed, not file:",
        ),
        (
            "[mcp.connectors.x]\nurl = 'http://x'\nargs = ['x']".into(),
            &[],
            "`mcp.connectors.x.args` (antiphon.toml): it needs `command`; for this server it does nothing",
        ),
        (
            "[mcp.connectors.x]\ncommand = 'x'\nauthorization_env = 'T'".into(),
            &[("T", "t")],
            "`mcp.connectors.x.authorization_env` (antiphon.toml): it needs `url`; for this server it does nothing",
        ),
        (
            "[mcp.connectors.x]\nurl = 'http://x'\nauthorization_env = 'T'".into(),
            &[],
            "`mcp.connectors.x.authorization_env` (antiphon.toml): the environment variable T that it names is not set",
        ),
        (
            "[mcp.connectors.x]\nurl = 'http://x'\nheaders_env = { x-key = 'T' }".into(),
            &[],
            "`mcp.connectors.x.headers_env.x-key` (antiphon.toml): the environment variable T that it names is not set",
        ),
        (
            "[mcp.connectors.x]\nurl = 'http://x'\nheaders = { 'x key' = 'T' }".into(),
            &[],
            "`mcp.connectors.x.headers.x key` (antiphon.toml): `x key` cannot be the name of a header",
        ),
        (
            "[mcp.connectors.x]\nurl = 'http://x'\naliases = ['y']\n[mcp.connectors.y]\nurl = 'http://y'".into(),
            &[],
            "`mcp.connectors.x.aliases` (antiphon.toml): another connector is called `y` already",
        ),
        (
            "[tools.image_generation]\nmodel = 'gpt-image-1'".into(),
            &[],
            "`tools.image_generation.base_url` (antiphon.toml): the address of an images API is needed, \
             such as \"https://api.openai.com/v1\"",
        ),
        (
            "[tools.image_generation]\nbase_url = 'http://a/v1'\nsize = 'big'".into(),
            &[],
            "`tools.image_generation.size` (antiphon.toml): `big` is no size; it should look like \"1024x1024\"",
        ),
        (
            "[tools.image_generation]\nbase_url = 'http://a/v1'\napi_key_env = 'IMAGE_KEY'".into(),
            &[],
            "`tools.image_generation.api_key_env` (antiphon.toml): the environment variable IMAGE_KEY that it names is not set",
        ),
        (
            "[tools.web_search]\nprovider = 'bravo'".into(),
            &[],
            "`tools.web_search.provider` (antiphon.toml): `bravo` is not one of its values; did you mean `brave`?",
        ),
        (
            "[tools.web_search]\napi_key_env = 'KEY'".into(),
            &[("KEY", "k")],
            "`tools.web_search.provider` (antiphon.toml): a provider is needed: \
             \"searxng\", \"exa\", \"brave\", \"serper\", \"tavily\" or \"google_pse\"",
        ),
        (
            "[tools.web_search]\nprovider = 'searxng'".into(),
            &[],
            "`tools.web_search.base_url` (antiphon.toml): SearXNG has no usual place: \
             give the address of the instance, such as \"http://127.0.0.1:8888\"",
        ),
        (
            "[tools.web_search]\nprovider = 'brave'\napi_key_env = 'BRAVE_API_KEY'".into(),
            &[],
            "`tools.web_search.api_key_env` (antiphon.toml): the environment variable BRAVE_API_KEY that it names is not set",
        ),
        (
            "[tools.web_search]\nprovider = 'google_pse'".into(),
            &[],
            "`tools.web_search.api_key_env` (antiphon.toml): this provider needs a key: \
             name the environment variable that holds it\n  \
             `tools.web_search.engine_id` (antiphon.toml): google_pse needs the id of a Programmable Search Engine, \
             which its control panel shows as `cx`",
        ),
        (
            "[tools.open_url]\nprovider = 'firecrawl'".into(),
            &[],
            "`tools.open_url.api_key_env` (antiphon.toml): this provider needs a key: \
             name the environment variable that holds it",
        ),
        (
            "[http]\ncors = ['https://a/']".into(),
            &[],
            "`http.cors` (antiphon.toml): `https://a/` is no origin; it should look like \"https://chat.example\", with no path",
        ),
        (
            "[auth]\ntrusted_user_header = 'x user'".into(),
            &[],
            "`auth.trusted_user_header` (antiphon.toml): `x user` cannot be the name of a header",
        ),
        (
            with("headers = { 'x y' = 'hunter2' }"),
            &[],
            "`upstreams[0].headers.x y` (antiphon.toml): `x y` cannot be the name of a header",
        ),
        (
            with("headers = { authorization = \"hunter2\\n\" }"),
            &[],
            "`upstreams[0].headers.authorization` (antiphon.toml): the value cannot be sent: it holds a control character",
        ),
        (
            String::new(),
            &[("RUST_LOG", "antiphon=loud")],
            "`log.filter` (environment variable RUST_LOG): `antiphon=loud` is no filter: error parsing level filter: \
             expected one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\", or a number 0-5",
        ),
        (
            String::new(),
            &[("DATABASE_URL", "mysql://u:hunter2@h/d")],
            "`database_url` (environment variable DATABASE_URL): an address that begins with postgres:// is needed",
        ),
        (
            String::new(),
            &[("ANTIPHON_SEAL_KEYS", "a,,b")],
            "environment variable ANTIPHON_SEAL_KEYS: one of the keys, which commas separate, is empty",
        ),
        (
            "[tools.openapi.credentials.x]\nvalue_env = 'MY_KEY'\nhosts = ['a.example']".into(),
            &[],
            "`tools.openapi.credentials.x.value_env` (antiphon.toml): \
             the environment variable MY_KEY that it names is not set",
        ),
        (
            "[tools.openapi.credentials.x]\nvalue_env = 'MY_KEY'\nhosts = ['*.example']".into(),
            &[("MY_KEY", "hunter2")],
            "`tools.openapi.credentials.x.hosts[0]` (antiphon.toml): a host is needed, such as \
             \"api.example\" (HTTPS alone), \"api.example:8443\" or \"http://127.0.0.1:8000\"",
        ),
        (
            "[tools.openapi.credentials.x]\nvalue_env = 'MY_KEY'\nhosts = []".into(),
            &[("MY_KEY", "hunter2")],
            "`tools.openapi.credentials.x.hosts` (antiphon.toml): at least one host is needed, or the credential goes nowhere",
        ),
        (
            "[tools.openapi.credentials.x]\nkind = 'header'\nvalue_env = 'MY_KEY'\nhosts = ['a']"
                .into(),
            &[("MY_KEY", "hunter2")],
            "`tools.openapi.credentials.x.name` (antiphon.toml): the name of the header is needed, such as \"x-api-key\"",
        ),
        (
            "[tools.openapi.credentials.x]\nname = 'x-key'\nvalue_env = 'MY_KEY'\nhosts = ['a']"
                .into(),
            &[("MY_KEY", "hunter2")],
            "`tools.openapi.credentials.x.name` (antiphon.toml): it has no effect with this kind; \
             set `kind` to \"header\" or \"query\"",
        ),
        (
            "[tools.openapi.credentials.x]\nkind = 'basic'\nvalue_env = 'MY_KEY'\nhosts = ['a']"
                .into(),
            &[("MY_KEY", "hunter2")],
            "`tools.openapi.credentials.x.value_env` (antiphon.toml): what the variable holds must look like user:password",
        ),
        (
            "listen = '127.0.0.1:1'\ndatabase_url = 'postgres://u:hunter2".into(),
            &[],
            "antiphon.toml: line 2 is not TOML: invalid literal string, expected `'`",
        ),
    ];
    for (text, env, expected) in cases {
        assert_eq!(error(text, env), *expected, "{text} {env:?}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = "[http]\ncors = ['x']\n[[upstreams]]\nname = ''\nbase_url = 'http://a'\napi_key_env = 'NOT_SET'";
    let error = load(text, &[]).unwrap_err();
    let keys: Vec<&str> = error.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["http.cors", "upstreams[0].name", "upstreams[0].api_key_env"]);
}

#[test]
fn options_win_and_are_named() {
    let env: Environment = [("ANTIPHON_LISTEN", "127.0.0.1:1")].into_iter().collect();
    let sources = |listen| Sources::new(&env).option("--listen", "listen", Some(listen));
    let loaded = sources("127.0.0.1:2").load_text(Path::new("x"), "").unwrap();
    assert_eq!(loaded.config.listen.port(), 2);
    let error = sources("nowhere").load_text(Path::new("x"), "").unwrap_err();
    assert_eq!(error.problems[0].origin, Origin::CommandLine("--listen"));
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let env = Environment::default();
    let error = Sources::new(&env).file(Some(Path::new("no/such/file.toml"))).load().unwrap_err();
    assert_eq!(error.problems[0].origin, Origin::File("no/such/file.toml".into()));
    assert!(error.to_string().contains("the file cannot be read: No such file"), "{error}");
}

#[test]
fn nothing_printed_holds_a_secret() {
    let text = "database_url = 'postgres://u:hunter2@h/d?password=hunter2'\n[[upstreams]]\nname = 'a'\n\
                base_url = 'http://h/v1'\napi_key_env = 'KEY'\nheaders = { authorization = 'hunter2' }\n\
                [tools.openapi.credentials.x]\nvalue_env = 'KEY'\nhosts = ['a.example']";
    let env = [
        ("KEY", "hunter2"),
        ("ANTIPHON_SEAL_KEYS", "hunter2"),
        ("ANTIPHON_BOOTSTRAP_KEY", "hunter2"),
    ];
    let loaded = load(text, &env).unwrap();
    let printed = effective(&loaded);
    assert!(!printed.contains("hunter2"), "{printed}");
    assert!(printed.contains("authorization = \"[secret]\""), "{printed}");
    assert!(printed.contains("max_rounds = 32"), "defaults are there: {printed}");
    let debug = format!("{loaded:?}");
    assert!(!debug.contains("hunter2"), "{debug}");
}

#[test]
fn what_is_printed_loads_again() {
    let file = include_str!("../../config/example.toml");
    let env = [("OPENAI_API_KEY", "sk-1"), ("ANTIPHON_HTTP__PING_SECONDS", "9")];
    let loaded = load(file, &env).unwrap();
    let again = config(&effective(&loaded), &[("OPENAI_API_KEY", "sk-1")]);
    assert_eq!(format!("{again:#?}"), format!("{:#?}", loaded.config));
}

#[test]
fn mcp_servers_get_what_their_variables_hold() {
    let file = "[mcp.connectors.a]\nurl = 'https://a/mcp'\nauthorization_env = 'A_TOKEN'\n\
                headers = { x-team = 'red' }\nheaders_env = { x-key = 'A_KEY' }\n\
                [mcp.connectors.b]\ncommand = 'b'\nenv = { MODE = 'quiet', HOME = '/b' }\npass_env = ['B_KEY']";
    let env = [
        ("A_TOKEN", "t"),
        ("A_KEY", "k"),
        ("B_KEY", "bk"),
        ("PATH", "/bin"),
        ("HOME", "/home/ada"),
        ("OTHER", "x"),
    ];
    let config = config(file, &env);
    let shown = |pairs: &BTreeMap<String, Secret>| -> Vec<String> {
        pairs.iter().map(|(name, value)| format!("{name}={}", value.expose())).collect()
    };
    let (a, b) = (&config.mcp.connectors["a"], &config.mcp.connectors["b"]);
    assert_eq!(a.authorization.as_ref().map(Secret::expose), Some("t"));
    assert_eq!(shown(&a.headers), ["x-key=k", "x-team=red"]);
    assert_eq!(shown(&b.env), ["B_KEY=bk", "HOME=/b", "MODE=quiet", "PATH=/bin"]);
    assert!(a.env.is_empty());
    let shown = effective(&load(file, &env).unwrap());
    assert!(!shown.contains("quiet") && !shown.contains("red"), "{shown}");
}
