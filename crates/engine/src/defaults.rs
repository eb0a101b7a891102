//! What is left out of a written event, and what a reader takes for it.

pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(crate) fn first() -> u32 {
    1
}

pub(crate) fn is_first(number: &u32) -> bool {
    *number == 1
}
