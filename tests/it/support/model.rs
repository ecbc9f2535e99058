//! A model that plays a script, keeps what it was asked, and stops at gates.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use antiphon::{
    model::{Ask, Deltas, Facts, Model, ModelError},
    protocol::Usage,
    text::{rescue::Reading, think::ThinkMode},
    turn::{
        Delta, Finish,
        prompt::{PromptMessage, PromptPart},
    },
};
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use tokio::sync::Semaphore;

/// A model that plays its Rounds in order. One that is asked more often than it has Rounds panics, and so fails the test.
pub(crate) struct Script {
    rounds: Mutex<VecDeque<Round>>,
    asked: Mutex<Vec<Asked>>,
    deserted: Arc<Semaphore>,
}

/// What the model does in one Round.
pub(crate) enum Round {
    /// It says these things.
    Play(Vec<Step>),
    /// It refuses the question.
    Refuse(ModelError),
}

/// One thing that a model does.
pub(crate) enum Step {
    /// It says this.
    Say(Delta),
    /// It waits until the gate is opened.
    Wait(Gate),
    /// It breaks off.
    Break(ModelError),
    /// It is a bug.
    Panic,
}

/// A place where a script waits, and where a test can wait for it.
#[derive(Clone)]
pub(crate) struct Gate {
    reached: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

/// One question that the model was asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) model: String,
    /// `role: text` for each message.
    pub(crate) messages: Vec<String>,
    /// The names of the tools.
    pub(crate) tools: Vec<String>,
}

impl Gate {
    pub(crate) fn closed() -> Self {
        Self { reached: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    /// Waits until a script stands here.
    pub(crate) async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    /// Stands here until the gate is opened.
    pub(crate) async fn pass(&self) {
        self.reached.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }

    /// Lets one script go on.
    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }
}

impl Script {
    pub(crate) fn new(rounds: impl IntoIterator<Item = Round>) -> Arc<Self> {
        Arc::new(Self {
            rounds: Mutex::new(rounds.into_iter().collect()),
            asked: Mutex::default(),
            deserted: Arc::new(Semaphore::new(0)),
        })
    }

    /// All questions so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits until somebody stopped listening before the end of a Round.
    pub(crate) async fn deserted(&self) {
        self.deserted.acquire().await.unwrap().forget();
    }
}

/// The steps of a model that says a text and is done.
pub(crate) fn text(text: &str) -> Round {
    Round::Play(vec![say(text), usage(), stop()])
}

/// The steps of a model that calls a function and is done.
pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Round {
    Round::Play(vec![
        Step::Say(Delta::Call { position: 0, id: Some(id.to_owned()), name: name.to_owned() }),
        Step::Say(Delta::Arguments { position: 0, piece: arguments.to_owned() }),
        usage(),
        stop(),
    ])
}

/// It says a piece of text.
pub(crate) fn say(text: &str) -> Step {
    Step::Say(Delta::Text { text: text.to_owned(), logprobs: Vec::new() })
}

/// It is done.
pub(crate) fn stop() -> Step {
    Step::Say(Delta::Finish(Finish::Stop))
}

/// It says how much that was.
pub(crate) fn usage() -> Step {
    Step::Say(Delta::Usage(Usage {
        input_tokens: 5,
        output_tokens: 2,
        total_tokens: 7,
        ..Usage::default()
    }))
}

impl Model for Script {
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> BoxFuture<'a, Result<Deltas, ModelError>> {
        self.asked.lock().unwrap().push(Asked {
            model: ask.model.to_owned(),
            messages: ask.messages.iter().map(line).collect(),
            tools: ask.tools.iter().map(|tool| tool.name.clone()).collect(),
        });
        let round = self.rounds.lock().unwrap().pop_front().expect("asked once too often");
        let listener =
            Listener { deserted: self.deserted.clone(), finished: AtomicBool::new(false) };
        async move {
            match round {
                Round::Refuse(error) => {
                    listener.content();
                    Err(error)
                }
                Round::Play(steps) => Ok(play(steps, listener)),
            }
        }
        .boxed()
    }

    fn facts<'a>(&'a self, _model: &'a str) -> BoxFuture<'a, Facts> {
        std::future::ready(Facts { think: ThinkMode::Off, reading: Reading::default() }).boxed()
    }
}

/// Notices that the listener went away.
struct Listener {
    deserted: Arc<Semaphore>,
    finished: AtomicBool,
}

impl Listener {
    /// It has heard the end.
    fn content(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.finished.load(Ordering::Relaxed) {
            self.deserted.add_permits(1);
        }
    }
}

fn play(steps: Vec<Step>, listener: Listener) -> Deltas {
    let steps = VecDeque::from(steps);
    stream::unfold((steps, listener), |(mut steps, listener)| async move {
        loop {
            match steps.pop_front() {
                Some(Step::Say(delta)) => return Some((Ok(vec![delta]), (steps, listener))),
                Some(Step::Wait(gate)) => gate.pass().await,
                Some(Step::Break(error)) => {
                    steps.clear();
                    listener.content();
                    return Some((Err(error), (steps, listener)));
                }
                Some(Step::Panic) => panic!("a bug in a model"),
                None => {
                    listener.content();
                    return None;
                }
            }
        }
    })
    .boxed()
}

fn line(message: &PromptMessage<'_>) -> String {
    match message {
        PromptMessage::System(text) => format!("system: {text}"),
        PromptMessage::User(parts) => format!("user: {}", joined(parts)),
        PromptMessage::Assistant(message) => {
            let calls =
                message.calls.iter().map(|call| format!(" {}({})", call.name, call.arguments));
            format!("assistant: {}{}", message.text, calls.collect::<String>())
        }
        PromptMessage::Tool { call_id, output } => format!("tool {call_id}: {}", joined(output)),
    }
}

fn joined(parts: &[PromptPart<'_>]) -> String {
    let texts = parts.iter().map(|part| match part {
        PromptPart::Text(text) => text.to_string(),
        PromptPart::Image { url, .. } => format!("<image {url}>"),
        PromptPart::File { .. } => "<file>".to_owned(),
        PromptPart::Audio(_) => "<audio>".to_owned(),
        PromptPart::Video(url) => format!("<video {url}>"),
    });
    texts.collect::<Vec<_>>().join(" ")
}
