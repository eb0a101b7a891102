//! How the program is linked, and which build it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Linked to one address, the program needs no relocation when it starts. There is a shim for each attempt,
    // so that is half a millisecond of every turn and half a megabyte of every live run.
    #[expect(clippy::disallowed_methods, reason = "cargo tells build scripts this way")]
    let of_target = |name: &str| std::env::var(name).unwrap_or_default();
    let is_linux = of_target("CARGO_CFG_TARGET_OS") == "linux";
    if is_linux && of_target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        if of_target("HOST") == of_target("TARGET") {
            link_unwinder();
        }
    }
    let mut hash = Hash::new();
    for name in ["TARGET", "PROFILE", "CARGO_CFG_FEATURE"] {
        hash.add(of_target(name).as_bytes());
    }
    hash_sources(&PathBuf::from(of_target("CARGO_MANIFEST_DIR")), &mut hash);
    println!("cargo:rustc-env=OUTLAST_BUILD={:016x}", hash.0);
}

/// Has the part of the C compiler's runtime that std walks stacks with linked into the program: as a library of its own
/// it is loaded at each start, for a tenth of a millisecond. Where the compiler does not have it as an archive, or the
/// linker prefers the library, the program is the same and starts later.
fn link_unwinder() {
    #[expect(clippy::disallowed_methods, reason = "a build script asks the compiler")]
    let mut compiler = Command::new("cc");
    let Ok(said) = compiler.arg("-print-file-name=libgcc_eh.a").output() else { return };
    let archive = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
    if let Some(directory) = archive.parent().filter(|it| it.is_absolute() && archive.is_file()) {
        println!("cargo:rustc-link-search=native={}", directory.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// What the program is made of: our own sources, and the exact versions of all others. The same on every machine,
/// with or without git.
fn hash_sources(manifest: &Path, hash: &mut Hash) {
    let root = manifest.join("../..");
    let mut files = vec![root.join("Cargo.toml"), root.join("Cargo.lock")];
    let crates = children(&manifest.join(".."));
    for part in crates {
        println!("cargo:rerun-if-changed={}", part.join("src").display());
        files.push(part.join("Cargo.toml"));
        gather(&part.join("src"), &mut files);
    }
    for file in files {
        let Ok(content) = fs::read(&file) else { continue };
        println!("cargo:rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&root).unwrap_or(&file);
        hash.add(name.as_os_str().as_encoded_bytes());
        hash.add(&content);
    }
}

fn gather(dir: &Path, files: &mut Vec<PathBuf>) {
    for child in children(dir) {
        if child.is_dir() { gather(&child, files) } else { files.push(child) }
    }
}

/// In an order that every file system agrees on.
fn children(dir: &Path) -> Vec<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a build that is interrupted is made again")]
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut children: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    children.sort();
    children
}

/// FNV-1a: enough to tell builds apart, the same for ever, and no dependency. Proves nothing to a forger.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// With its length, so that two pieces are not one.
    fn add(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
