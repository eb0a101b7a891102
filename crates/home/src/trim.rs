//! Giving back what only the launch needed.
//!
//! The shim is one life of a larger program, and so is the daemon: starting either touches pages of code and
//! tables that it never looks at again. They are a file's, unchanged, so the kernel can drop them from this
//! process and bring back the few that are wanted. With a thousand shims this is what most of their size
//! consists of.

/// Drops every page of a mapped file that this process has not changed. On failure it stays as it is.
#[cfg(target_os = "linux")]
pub fn give_back() {
    let Ok(smaps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    for (start, length) in unchanged(&smaps) {
        #[expect(unsafe_code, reason = "the address of a mapping cannot be borrowed")]
        // SAFETY: the range is a whole mapping of a file, read-only and without a single changed page, so
        // what is read from it afterwards is what was there before. Nothing unmaps what was mapped when the
        // program was loaded, also not another thread; one that reads from it meanwhile waits for the page.
        let dropped = unsafe {
            rustix::mm::madvise(
                start as *mut std::ffi::c_void,
                length,
                rustix::mm::Advice::LinuxDontNeed,
            )
        };
        // A page that stays costs memory and nothing else.
        let _stays = dropped;
    }
}

#[cfg(not(target_os = "linux"))]
pub fn give_back() {}

/// The read-only mappings of files of which no page was changed (relocation changes some), as start and
/// length.
fn unchanged(smaps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(mapping) = read_only_file(line) {
            current = mapping;
        } else if line.starts_with("Anonymous:") && line.split_whitespace().nth(1) == Some("0") {
            found.extend(current.take());
        }
    }
    found
}

/// `None` if the line opens no mapping; `Some(None)` if it opens one that is not a read-only file.
fn read_only_file(line: &str) -> Option<Option<(usize, usize)>> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    let permissions = fields.next()?;
    let is_file = fields.nth(3).is_some_and(|path| path.starts_with('/'));
    let is_wanted = is_file && matches!(permissions, "r--p" | "r-xp");
    Some(is_wanted.then_some((start, end - start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_read_only_files_are_given_back() {
        let smaps = "\
1000-3000 r-xp 00000000 fe:00 1 /bin/outlast
Rss:                   8 kB
Anonymous:             0 kB
4000-5000 r--p 00002000 fe:00 1 /bin/outlast
Anonymous:             4 kB
6000-7000 rw-p 00003000 fe:00 1 /bin/outlast
Anonymous:             0 kB
8000-9000 r--p 00000000 00:00 0 [vvar]
Anonymous:             0 kB
";
        assert_eq!(unchanged(smaps), [(0x1000, 0x2000)]);
    }

    #[test]
    fn a_process_goes_on_after_giving_back() {
        give_back();
        assert_eq!(unchanged("").len(), 0);
    }
}
