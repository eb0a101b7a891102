//! `cargo xtask web-shots`: a picture of every page at three widths, light and dark, for a person to look at.
//!
//! The suite's own walk through the pages makes them, so a picture shows what the tests saw.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::root;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the pictures go
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Instead, the pictures of the README and of docs/web.md, into docs/pictures
    #[arg(long, conflicts_with = "to")]
    pictures: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let usual = match args.pictures {
        true => root::repository().join("docs/pictures"),
        false => root::target().join("web-shots"),
    };
    let dir = args.to.clone().unwrap_or(usual);
    std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
    let dir = dir.canonicalize().with_context(|| dir.display().to_string())?;
    let walk = match args.pictures {
        true => &["web_shots::pictures_of_the_docs", "--nocapture", "--ignored"][..],
        false => &["web_pages::slow_every_page", "--nocapture"][..],
    };
    let mut suite = root::suite(walk);
    suite.env("OUTLAST_WEB_SHOTS", &dir);
    let status = suite.status().context("starting the suite")?;
    ensure!(status.success(), "the suite ended with {status}");
    let is_picture = |path: PathBuf| path.extension().is_some_and(|it| it == "png" || it == "webp");
    let many = std::fs::read_dir(&dir)?.flatten().filter(|it| is_picture(it.path())).count();
    ensure!(many > 0, "no picture was made: is there a chromium with a chromedriver?");
    println!("{many} pictures in {}", dir.display());
    Ok(())
}
