//! Connections between daemons and shims. What one side has sent stays readable after its death.

use std::collections::VecDeque;

use crate::record::Record;

pub(crate) type ConnId = u64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    Hello { epoch: u64 },
    Start { epoch: u64 },
    Stop { is_graceful: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    Hello { records: Vec<Record> },
    Record(Record),
    Refused,
}

#[derive(Debug, Default)]
pub(crate) struct Conn {
    pub(crate) to_shim: VecDeque<Order>,
    pub(crate) to_daemon: VecDeque<News>,
    pub(crate) shim_is_gone: bool,
    pub(crate) daemon_is_gone: bool,
    /// The epoch that the daemon has been welcomed with.
    pub(crate) epoch: Option<u64>,
}

impl Conn {
    pub(crate) fn tell_daemon(&mut self, news: News) {
        if !self.daemon_is_gone {
            self.to_daemon.push_back(news);
        }
    }

    pub(crate) fn tell_shim(&mut self, order: Order) {
        if !self.shim_is_gone {
            self.to_shim.push_back(order);
        }
    }
}
