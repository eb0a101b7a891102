//! How the program is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Linked to one address, the program needs no relocation when it starts. There is a shim for each attempt,
    // so that is half a millisecond of every turn and half a megabyte of every live run.
    #[expect(clippy::disallowed_methods, reason = "cargo tells build scripts this way")]
    let of_target = |name: &str| std::env::var(name).unwrap_or_default();
    let is_linux = of_target("CARGO_CFG_TARGET_OS") == "linux";
    if is_linux && of_target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
