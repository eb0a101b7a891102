//! Packs the files of `ui/` with gzip, and writes a table of them for `assets.rs`. Needs nothing but Rust.

use std::error::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, Crc, GzBuilder};

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script by its environment")]
fn main() -> Result<(), Box<dyn Error>> {
    let ui = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("ui");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", ui.display());
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(&ui)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort_unstable();
    let mut table = String::from("&[\n");
    for name in names {
        let bytes = std::fs::read(ui.join(&name))?;
        let packed = out.join(format!("{name}.gz"));
        pack(&packed, &bytes)?;
        let mut sum = Crc::new();
        sum.update(&bytes);
        let tag = format!("\\\"{:08x}-{}\\\"", sum.sum(), bytes.len());
        writeln!(
            table,
            "Asset {{ name: {name:?}, tag: \"{tag}\", packed: include_bytes!({packed:?}) }},"
        )?;
    }
    table.push(']');
    File::create(out.join("assets.in"))?.write_all(table.as_bytes())?;
    Ok(())
}

/// The same bytes give the same file, whenever it is made.
fn pack(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut packer = GzBuilder::new().mtime(0).write(File::create(path)?, Compression::best());
    packer.write_all(bytes)?;
    packer.finish()?;
    Ok(())
}
