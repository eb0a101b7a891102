//! What the service manager hears of us. It hears nothing if there is none, and then no timer runs either.

use sd_notify::NotifyState;

use super::Service;

impl Service {
    /// Loaded and listening.
    pub(crate) fn say_ready(&self, open: usize) {
        let status = format!("{open} open runs taken over");
        self.say(&[NotifyState::Ready, NotifyState::Status(&status)]);
    }

    /// Another daemon has the lock.
    pub(crate) fn say_waiting(&self) {
        let status = "waiting for the daemon that runs already; outlast daemon stop ends it";
        self.say(&[NotifyState::Status(status)]);
    }

    pub(crate) fn say_stopping(&self) {
        self.say(&[NotifyState::Stopping, NotifyState::Status("leaving; runs go on")]);
    }

    /// Feeds the watchdog for as long as it is polled. It has to be polled by the loop that does the work, which
    /// is what the watchdog is to know.
    pub(crate) async fn stay_alive(&self) {
        let Some(within) = self.watchdog else { return std::future::pending().await };
        let mut ticks = tokio::time::interval(within / 2);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.say(&[NotifyState::Watchdog]);
        }
    }

    fn say(&self, news: &[NotifyState]) {
        if !self.is_awaited {
            return;
        }
        if let Err(error) = sd_notify::notify(news) {
            tracing::warn!(%error, ?news, "the service manager does not hear us");
        }
    }
}
