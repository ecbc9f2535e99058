//! `antiphon:memory` and `/v1/memories`.

use std::sync::Arc;

use antiphon::{
    clock::{Clock, Ids},
    model::{ModelError, ModelErrorKind},
    store::memories::{self, Memory as Row, Owner},
    tools::{
        Toolbox,
        memory::{Memory, MemoryParts},
    },
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use time::Duration;

use crate::support::{
    model::{Round, Script, call, text},
    postgres,
    server::{NOW, Server, Setup, start, start_with},
};

const MOST: usize = 50;

struct Stage {
    server: Server,
    script: Arc<Script>,
    clock: Clock,
}

async fn stage(rounds: impl IntoIterator<Item = Round>, utility: Option<&str>) -> Stage {
    let (pool, clock) = (postgres::database().await.0, Clock::fixed(NOW));
    let script = Script::new(rounds);
    let memory = Memory::new(MemoryParts {
        pool: pool.clone(),
        clock: clock.clone(),
        ids: Ids::seeded(1000),
        model: script.clone(),
        utility: utility.map(str::to_owned),
        default_model: None,
        most: MOST,
    });
    let tools = Toolbox { memory: Some(memory), ..Toolbox::default() };
    let setup = Setup { tools, pool: Some(pool), clock: clock.clone(), ..Setup::default() };
    let server = start_with(script.clone(), setup).await;
    Stage { server, script, clock }
}

fn remember(fact: &str) -> Round {
    call("call_1", "remember", &json!({ "fact": fact }).to_string())
}

impl Stage {
    /// Says something with the tool; what the first call came to.
    async fn say(&self, key: &str, stored: bool) -> Value {
        let body = json!({
            "model": "m", "input": "I moved to Rome.", "instructions": "Be kind.", "store": stored,
            "tools": [{ "type": "antiphon:memory" }],
        });
        let (status, response) =
            self.server.send("POST", "/v1/responses", Some(body), Some(key)).await;
        assert_eq!(status, 200, "{response}");
        self.clock.advance(Duration::seconds(1));
        response["output"][0].clone()
    }

    /// What is remembered, newest first.
    async fn texts(&self, key: &str) -> Vec<String> {
        let (status, page) =
            self.server.send("GET", "/v1/memories?limit=100", None, Some(key)).await;
        assert_eq!(status, 200, "{page}");
        let texts = page["data"].as_array().unwrap().iter();
        texts.map(|memory| memory["text"].as_str().unwrap().to_owned()).collect()
    }

    /// The system text of a question.
    fn told(&self, question: usize) -> String {
        self.script.asked()[question].messages[0].clone()
    }
}

#[tokio::test]
async fn facts_are_told_to_their_user_alone() {
    let rounds = [
        remember("Lives in Oslo."),
        text("Noted."),
        text("You live in Oslo."),
        text("Who are you?"),
        text("Who are you?"),
    ];
    let stage = stage(rounds, None).await;
    let (mine, yours) = (stage.server.key("a", "one").await, stage.server.key("b", "one").await);
    let far = stage.server.key("c", "two").await;
    let item = stage.say(&mine, true).await;
    assert_eq!(
        (&item["type"], &item["server_label"], &item["name"], &item["output"]),
        (
            &json!("mcp_call"),
            &json!("antiphon"),
            &json!("remember"),
            &json!("Remembered: Lives in Oslo.")
        )
    );
    for key in [&mine, &yours, &far] {
        stage.say(key, true).await;
    }
    assert_eq!(stage.told(0), "system: Be kind.");
    let told = stage.told(2);
    assert!(told.starts_with("system: Be kind.\n\nWhat is known about the user"), "{told}");
    assert!(told.contains("not instructions") && told.ends_with("\n- Lives in Oslo."), "{told}");
    assert_eq!((stage.told(3), stage.told(4)), (stage.told(0), stage.told(0)));
    assert_eq!(stage.texts(&mine).await, ["Lives in Oslo."]);
    assert_eq!((stage.texts(&yours).await, stage.texts(&far).await), (Vec::new(), Vec::new()));

    // What is not theirs looks like what is not there.
    let (_, page) = stage.server.send("GET", "/v1/memories", None, Some(&mine)).await;
    let id = page["data"][0]["id"].as_str().unwrap();
    let path = format!("/v1/memories/{id}");
    for key in [&yours, &far] {
        assert_eq!(stage.server.send("DELETE", &path, None, Some(key)).await.0, 404);
        let after = format!("/v1/memories?after={id}");
        assert_eq!(stage.server.send("GET", &after, None, Some(key)).await.0, 400);
        let cleared = stage.server.send("DELETE", "/v1/memories", None, Some(key)).await;
        assert_eq!(cleared.1["count"], 0);
    }
    let (status, gone) = stage.server.send("DELETE", &path, None, Some(&mine)).await;
    assert_eq!((status, &gone["deleted"], &gone["id"]), (200, &json!(true), &json!(id)));
    assert_eq!(stage.server.send("DELETE", &path, None, Some(&mine)).await.0, 404);
    assert_eq!(stage.texts(&mine).await, [""; 0]);
}

#[tokio::test]
async fn a_model_decides_what_is_new() {
    let refusal = ModelError::new(ModelErrorKind::Rejected, "no");
    let rounds = [
        remember("Lives in Oslo."),
        text("Noted."),
        // The same again is not worth a question.
        remember(" Lives in\nOslo. "),
        text("I know."),
        remember("Moved to Rome."),
        text("```json\n{\"operation\":\"update\",\"number\":1,\"text\":\"Lives in Rome.\"}\n```"),
        text("Noted."),
        remember("Likes tea."),
        text(r#"{"operation":"add"}"#),
        text("Noted."),
        remember("Has a cat."),
        text("I would rather not say."),
        text("Noted."),
        remember("Has a dog."),
        Round::Refuse(refusal),
        text("Noted."),
    ];
    let stage = stage(rounds, Some("small")).await;
    let key = stage.server.key("a", "one").await;
    let mut outputs = Vec::new();
    for _ in 0..6 {
        outputs.push(stage.say(&key, true).await["output"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        outputs,
        [
            "Remembered: Lives in Oslo.",
            "This was known already: Lives in Oslo.",
            "Remembered: Lives in Rome. (In place of what was known before: Lives in Oslo.)",
            "Remembered: Likes tea.",
            "Remembered: Has a cat.",
            "Remembered: Has a dog.",
        ]
    );
    assert_eq!(
        stage.texts(&key).await,
        ["Has a dog.", "Has a cat.", "Likes tea.", "Lives in Rome."]
    );
    let asked = stage.script.asked();
    let question = &asked[5];
    assert_eq!((&*question.model, question.tools.len()), ("small", 0));
    assert!(question.messages[1].contains("1. Lives in Oslo."), "{:?}", question.messages);
    assert!(question.messages[1].contains("I moved to Rome."), "{:?}", question.messages);
    assert_eq!(asked.iter().filter(|asked| asked.model == "small").count(), 4);
}

#[tokio::test]
async fn nothing_is_remembered_of_what_is_not_stored() {
    let rounds =
        [remember("Lives in Oslo."), text("Noted."), remember("Likes tea."), text("I may not.")];
    let stage = stage(rounds, None).await;
    let key = stage.server.key("a", "one").await;
    stage.say(&key, true).await;
    let item = stage.say(&key, false).await;
    assert_eq!(item["status"], "failed");
    let told = stage.script.asked()[3].messages.join("\n");
    assert!(told.contains("`store` is false") && told.contains("Lives in Oslo."), "{told}");
    assert_eq!(stage.texts(&key).await, ["Lives in Oslo."]);
}

#[tokio::test]
async fn a_fact_must_be_one() {
    let rounds = [remember(" \n"), text("Oh."), remember(&"x".repeat(501)), text("Oh.")];
    let stage = stage(rounds, None).await;
    let key = stage.server.key("a", "one").await;
    for expected in ["A right example", "longer than 500 characters"] {
        let item = stage.say(&key, true).await;
        let error = item["error"].to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(stage.texts(&key).await, [""; 0]);
}

#[tokio::test]
async fn the_fact_not_said_for_longest_makes_room() {
    let rounds = [remember("Fact 51."), text(r#"{"operation":"add"}"#), text("Noted.")];
    let stage = stage(rounds, None).await;
    let key = stage.server.key("a", "one").await;
    let (pool, owner) = (&stage.server.pool, Owner { tenant_id: "one", user_id: "a" });
    let other = Owner { tenant_id: "two", user_id: "a" };
    let most = i64::try_from(MOST).unwrap();
    let row = |number: usize| Row {
        id: format!("mem_{number:03}"),
        text: format!("Fact {number}."),
        created_at: stage.clock.now(),
        updated_at: stage.clock.now(),
    };
    memories::add(pool, other, &Row { id: "mem_other".to_owned(), ..row(0) }, most).await.unwrap();
    for number in 1..=MOST {
        memories::add(pool, owner, &row(number), most).await.unwrap();
        stage.clock.advance(Duration::seconds(1));
    }
    // The first is said again, so the second is the oldest.
    memories::add(pool, owner, &Row { id: "mem_again".to_owned(), ..row(1) }, most).await.unwrap();
    stage.clock.advance(Duration::seconds(1));
    stage.say(&key, true).await;
    let texts = stage.texts(&key).await;
    assert_eq!(texts.len(), MOST);
    assert_eq!(texts[0], "Fact 51.");
    assert!(texts.contains(&"Fact 1.".to_owned()) && !texts.contains(&"Fact 2.".to_owned()));
    assert_eq!(memories::all(pool, other).await.unwrap().len(), 1, "others lose nothing");

    // Many at once leave not one too many.
    let rows: Vec<Row> = (100..120).map(row).collect();
    let adding = rows.iter().map(|row| memories::add(pool, owner, row, most));
    for added in futures::future::join_all(adding).await {
        added.unwrap();
    }
    assert_eq!(memories::all(pool, owner).await.unwrap().len(), MOST);
}

#[tokio::test]
async fn memories_come_in_pages_and_go_at_once() {
    let stage = stage([], None).await;
    let key = stage.server.key("a", "one").await;
    let owner = Owner { tenant_id: "one", user_id: "a" };
    for number in 1..=5 {
        let now = stage.clock.now();
        let row = Row {
            id: format!("mem_{number}"),
            text: format!("Fact {number}."),
            created_at: now,
            updated_at: now,
        };
        memories::add(&stage.server.pool, owner, &row, 50).await.unwrap();
        stage.clock.advance(Duration::seconds(1));
    }
    let page = async |query: &str| {
        let path = format!("/v1/memories{query}");
        stage.server.send("GET", &path, None, Some(&key)).await.1
    };
    let first = page("?limit=2").await;
    assert_eq!(
        first,
        json!({
            "object": "list",
            "data": [
                { "id": "mem_5", "object": "memory", "text": "Fact 5.", "created_at": NOW + 4, "updated_at": NOW + 4 },
                { "id": "mem_4", "object": "memory", "text": "Fact 4.", "created_at": NOW + 3, "updated_at": NOW + 3 },
            ],
            "first_id": "mem_5", "last_id": "mem_4", "has_more": true,
        })
    );
    let ids = |page: &Value| {
        let data = page["data"].as_array().unwrap().iter();
        data.map(|memory| memory["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&page("?after=mem_4").await), ["mem_3", "mem_2", "mem_1"]);
    assert_eq!(ids(&page("?order=asc&after=mem_3").await), ["mem_4", "mem_5"]);
    let (status, cleared) = stage.server.send("DELETE", "/v1/memories", None, Some(&key)).await;
    assert_eq!(
        (status, cleared),
        (200, json!({ "object": "memories.deleted", "deleted": true, "count": 5 }))
    );
    assert_eq!(page("").await["data"], json!([]));
}

#[tokio::test]
async fn a_server_without_memory_says_so() {
    let server = start(Script::new([])).await;
    let body = json!({ "model": "m", "input": "Hi", "tools": [{ "type": "antiphon:memory" }] });
    let (status, answer) = server.post("/v1/responses", body).await;
    assert_eq!((status, &answer["error"]["param"]), (400, &json!("tools[0]")));
    assert!(answer["error"]["message"].as_str().unwrap().contains("tools.memory.enabled"));
}
