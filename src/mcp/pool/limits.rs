use std::time::Duration;

use crate::config::Mcp;

/// What sessions and answers may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest that connecting may take.
    pub connect: Duration,
    /// The longest that a handshake or a page of a list may take.
    pub answer: Duration,
    /// The longest that a call may take unless its caller says otherwise.
    pub call: Duration,
    /// A session that nobody used for so long is closed.
    pub idle: Duration,
    /// The largest answer, in bytes.
    pub body: usize,
    /// The largest list of tools, all pages together, in bytes.
    pub list: usize,
    /// The most tools of one server.
    pub tools: usize,
    /// Questions to one server that run at the same time for one tenant; more wait.
    pub parallel: usize,
    /// Sessions that are open at the same time.
    pub sessions: usize,
}

impl From<&Mcp> for Limits {
    fn from(config: &Mcp) -> Self {
        Self {
            connect: config.connect,
            answer: config.answer,
            call: config.call,
            idle: config.idle,
            body: config.answer_limit(),
            list: config.answer_limit(),
            tools: config.max_tools.get(),
            parallel: config.max_parallel.get(),
            sessions: config.max_sessions.get(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::from(&Mcp::default())
    }
}
