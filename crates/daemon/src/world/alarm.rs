//! An alarm by the wall clock: it also goes off when the clock is set, and right after the machine
//! has slept. While nothing is due it costs nothing.

use std::future::pending;
use std::io;
use std::time::Duration;

/// Where no timer can be had: how long one sleep is at most, so that a clock that was set is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(crate) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: Option<linux::Timer>,
}

impl Alarm {
    /// Returns after `wait`, or earlier if the clock was set; never without a wait. The caller looks at the
    /// time again.
    pub(crate) async fn after(&mut self, wait: Option<Duration>) {
        let Some(wait) = wait else {
            self.disarm();
            return pending().await;
        };
        if let Err(error) = self.ring(wait).await {
            tracing::debug!(%error, "no timer for the wall clock; sleeping instead");
            tokio::time::sleep(wait.min(LONGEST_SLEEP)).await;
        }
    }

    #[cfg(target_os = "linux")]
    async fn ring(&mut self, wait: Duration) -> io::Result<()> {
        if wait.is_zero() {
            return Ok(());
        }
        let timer = match self.timer.take() {
            Some(timer) => timer,
            None => linux::Timer::new()?,
        };
        self.timer.insert(timer).ring(wait).await
    }

    #[cfg(not(target_os = "linux"))]
    async fn ring(&mut self, _: Duration) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn disarm(&mut self) {
        #[cfg(target_os = "linux")]
        drop(self.timer.take());
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
        clock_gettime, timerfd_create, timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
            Ok(Self(crate::world::readable(timer)?))
        }

        pub(super) async fn ring(&self, wait: Duration) -> io::Result<()> {
            let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
            let at = clock_gettime(ClockId::Realtime) + wait;
            let never = Timespec { tv_sec: 0, tv_nsec: 0 };
            let once = Itimerspec { it_interval: never, it_value: at };
            let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
            match timerfd_settime(self.0.get_ref(), flags, &once) {
                Ok(_) => {}
                // The clock was set since it was last looked at.
                Err(rustix::io::Errno::CANCELED) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            loop {
                let mut ready = self.0.readable().await?;
                let rang = ready.try_io(|timer| {
                    let mut count = [0; 8];
                    match rustix::io::read(timer.get_ref(), &mut count) {
                        // The clock was set.
                        Ok(_) | Err(rustix::io::Errno::CANCELED) => Ok(()),
                        Err(error) => Err(error.into()),
                    }
                });
                match rang {
                    Ok(rang) => return rang,
                    Err(_would_block) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_rings_again_and_again_and_without_a_wait_never() {
        let mut alarm = Alarm::default();
        for ms in [0, 1, 5] {
            alarm.after(Some(Duration::from_millis(ms))).await;
        }
        let never = tokio::time::timeout(Duration::from_millis(20), alarm.after(None)).await;
        assert!(never.is_err());
        // One that was given up does not ring for the next.
        let far = alarm.after(Some(Duration::from_secs(3600)));
        assert!(tokio::time::timeout(Duration::from_millis(5), far).await.is_err());
        alarm.after(Some(Duration::from_millis(1))).await;
    }
}
