use std::{fs, path::PathBuf, time::Duration};

use clap::CommandFactory;
use pretty_assertions::assert_eq;

use super::*;

/// Runs a command line: its exit code, what it answered and what it complained about.
async fn run_line(line: &[&str], env: &[(&str, &str)]) -> (ExitCode, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let env = env.iter().copied().collect();
    let args = [&["antiphon"], line].concat();
    let code = run(args, &env, Streams { out: &mut out, err: &mut err }).await;
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

/// A file with this text, which goes with the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("antiphon-cli-{}-{name}.toml", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn config_check_prints_what_is_in_force() {
    let file =
        File::new("good", "database_url = 'postgres://u:hunter2@h/d'\n[http]\nping_seconds = 7");
    let env = [("ANTIPHON_ENGINE__RETRIES", "5")];
    let (code, out, err) = run_line(&["config", "check", "--config", file.path()], &env).await;
    assert_eq!((code, err.as_str()), (ExitCode::SUCCESS, ""));
    assert!(
        out.starts_with(&format!(
            "# File: {}\n# engine.retries: environment variable ANTIPHON_ENGINE__RETRIES\n",
            file.path()
        )),
        "{out}"
    );
    assert!(
        out.contains("ping_seconds = 7\n")
            && out.contains("retries = 5\n")
            && out.contains("max_rounds = 32\n"),
        "{out}"
    );
    assert!(out.contains("database_url = \"[secret]\"\n") && !out.contains("hunter2"), "{out}");
}

#[tokio::test]
async fn config_check_fails_with_the_reason() {
    let file = File::new("bad", "[htp]\nping_seconds = 7");
    let (code, out, err) = run_line(&["config", "check", "--config", file.path()], &[]).await;
    assert_eq!((code, out.as_str()), (ExitCode::FAILURE, ""));
    let expected = format!(
        "antiphon: the configuration cannot be used:\n  `htp` ({}): there is no such key; did you mean `http`?\n",
        file.path()
    );
    assert_eq!(err, expected);
}

#[tokio::test]
async fn help_is_an_answer_and_a_typing_error_is_not() {
    let (code, out, err) = run_line(&["--help"], &[]).await;
    assert_eq!((code, err.as_str()), (ExitCode::SUCCESS, ""));
    assert!(out.contains("Examples:") && out.contains("ANTIPHON_SECTION__KEY"), "{out}");

    let (code, out, err) = run_line(&["config", "chekc"], &[]).await;
    assert_eq!((code, out.as_str()), (ExitCode::from(2), ""));
    assert!(err.contains("unrecognized subcommand 'chekc'") && err.contains("'check'"), "{err}");
}

#[test]
fn the_arguments_fit_together() {
    Cli::command().debug_assert();
}

/// The arguments of the commands that the server will have, as clap reads them.
#[derive(Debug, Parser)]
enum All {
    Serve(ServeArgs),
    Models(ModelsArgs),
    Keys(KeysArgs),
    Db(DbArgs),
}

#[test]
fn arguments_are_read() {
    All::command().debug_assert();
    let line = "antiphon keys new --tenant acme --user ada --group a --group b --name laptop --expires 90d --config x.toml";
    let All::Keys(KeysArgs { config, command: KeysCommand::New(new) }) =
        All::parse_from(line.split(' '))
    else {
        panic!("another command")
    };
    assert_eq!(config, Some(PathBuf::from("x.toml")));
    assert_eq!(
        (new.tenant.as_str(), new.user.as_deref(), new.name.as_deref()),
        ("acme", Some("ada"), Some("laptop"))
    );
    assert_eq!(
        (new.groups, new.expires),
        (vec!["a".to_owned(), "b".to_owned()], Some(Lifetime(Duration::from_hours(2160))))
    );

    for wrong in [
        "antiphon keys new --expires soon",
        "antiphon keys revoke",
        "antiphon db dump",
        "antiphon serve --port 1",
    ] {
        assert!(All::try_parse_from(wrong.split(' ')).is_err(), "{wrong}");
    }
}

#[test]
fn options_of_serve_go_over_the_configuration() {
    let file = File::new("serve", "listen = '127.0.0.1:1'");
    let line = ["antiphon", "serve", "--config", file.path(), "--listen", "0.0.0.0:2", "--open"];
    let All::Serve(args) = All::parse_from(line) else { panic!("another command") };
    let config = args.load(&Environment::default()).unwrap().config;
    assert_eq!((config.listen.to_string().as_str(), config.auth.open), ("0.0.0.0:2", true));
    let without = ServeArgs { config: args.config, ..ServeArgs::default() };
    let config = without.load(&Environment::default()).unwrap().config;
    assert_eq!((config.listen.to_string().as_str(), config.auth.open), ("127.0.0.1:1", false));
}

#[test]
fn lifetimes_have_a_unit_and_an_end() {
    for (text, hours) in [("12h", 12), ("90d", 2160), ("2w", 336), ("1y", 8760), ("100y", 876_000)]
    {
        assert_eq!(text.parse(), Ok(Lifetime(Duration::from_hours(hours))), "{text}");
    }
    for wrong in ["", "d", "0d", "90", "-1d", "1.5d", "101y", "99999999999999999999d", "9é", "1m"]
    {
        assert!(wrong.parse::<Lifetime>().is_err(), "{wrong}");
    }
}
