//! Locks that survive a panic of their holder.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder panics, and each table is sound between any two calls.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
