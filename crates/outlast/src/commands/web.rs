//! `outlast web`: the page that a browser on this machine shows, and links to it.

use outlast_client::problem::Problem;
use outlast_web::{Certificate, Link, Place, Serving, Told, Words};
use outlast_wire::api::{RunRow, RunView};
use serde_json::{Value, json};

use super::{block_on, events, run};
use crate::args::{Web, WebCommand};
use crate::attention::Group;
use crate::output::state::Condition;
use crate::signals::Detach;
use crate::world::World;
use crate::{Answer, duration, loop_file, output, report};

pub(crate) async fn web(world: &World, args: Web) -> Answer {
    match args.command {
        Some(WebCommand::Url { json, qr }) => url(world, json, qr),
        None => serve(world, args).await,
    }
}

fn url(world: &World, json: bool, qr: bool) -> Answer {
    let link = outlast_web::desk::link(world.client.layout()?)?;
    if json {
        output::print_json(&json!({ "url": link.here, "public_url": link.public }))?;
    } else {
        output::print_line(&link.here)?;
        link.public.iter().try_for_each(|link| output::print_line(link))?;
    }
    if qr {
        print_qr(&link)?;
    }
    Ok(0)
}

/// The link as a picture for a phone's camera: the address from elsewhere, if there is one.
fn print_qr(link: &Link) -> Result<(), Problem> {
    let text = link.public.as_ref().unwrap_or(&link.here);
    output::print_line(&crate::qr::drawn(text).map_err(Problem::failure)?)
}

/// Where the page is to be: the command line, then config.toml.
fn place(world: &World, args: &Web) -> Result<Place, Problem> {
    let (config, _) = loop_file::config(world.client.layout()?).map_err(|refused| {
        let first = refused.errors.first().map(ToString::to_string).unwrap_or_default();
        Problem::refusal("config_unusable", first).hint("outlast config check")
    })?;
    let web = config.web;
    let written = web.listen.as_deref().map(str::parse).transpose().map_err(|_| {
        let message = format!("web.listen is {:?}, and has to be an IP address", web.listen);
        Problem::refusal("bad_config", message).hint("outlast config check")
    })?;
    let certificate = match (web.certificate, web.key) {
        (Some(chain), Some(key)) => Some(Certificate { chain: chain.into(), key: key.into() }),
        (None, None) => None,
        _ => {
            let message = "web.certificate and web.key in config.toml need each other";
            return Err(Problem::refusal("bad_config", message).hint("outlast config check"));
        }
    };
    Ok(Place {
        address: args.listen.or(written),
        port: args.port,
        allow_remote: web.allow_remote,
        certificate,
        public_url: web.public_url,
    })
}

async fn serve(world: &World, args: Web) -> Answer {
    let mut detach = Detach::listen()?;
    let client = outlast_client::world::World::new(world.client.env.clone());
    let place = place(world, &args)?;
    let serving = Serving::prepare(client, words(world), place).await?;
    if args.no_link {
        output::tell(&format!(
            "outlast: the page is on port {}; outlast web url prints a link",
            serving.port()
        ));
        serving.until(detach.asked()).await;
        return Ok(0);
    }
    let (link, port) = (serving.link()?, serving.port());
    if args.json {
        output::print_json(&json!({ "url": link.here, "public_url": link.public, "port": port }))?;
    } else {
        output::print_line(&link.here)?;
        link.public.iter().try_for_each(|link| output::print_line(link))?;
        if args.qr {
            print_qr(&link)?;
        }
        output::tell("The link works once, within two minutes; outlast web url prints another.");
        output::tell("Ctrl-C ends the page; runs go on.");
    }
    if args.open {
        open(world, &serving.link()?.here)?;
    }
    serving.until(detach.asked()).await;
    Ok(0)
}

/// Has the desktop show the page, by a file that only this user can read.
fn open(world: &World, link: &str) -> Result<(), Problem> {
    let path = world.client.layout()?.web_opener();
    let cannot =
        |error: std::io::Error| Problem::failure(format_args!("{}: {error}", path.display()));
    outlast_web::desk::opener(&path, link).map_err(cannot)?;
    let tool = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if let Err(error) = world.tool(tool).arg(&path).spawn() {
        output::tell(&format!("outlast: cannot start {tool}: {error}; open the link yourself"));
    }
    Ok(())
}

/// The words of the command line, for the page.
fn words(world: &World) -> Words {
    let env = world.client.env.clone();
    let own = env.clone();
    Words {
        env: Box::new(move || run::vars(own.clone())),
        row: |row: &RunRow| told(&Condition::from(row)),
        view: |view: &RunView| told(&Condition::from(view)),
        teller: || Box::new(events::teller(jiff::Timestamp::now())),
        report: Box::new(move |since| report_of(&World::new(env.clone()), since.as_deref())),
    }
}

fn told(condition: &Condition<'_>) -> Told {
    let group = match Group::of(condition) {
        Group::NeedsMe => "needs_you",
        Group::Running => "running",
        Group::Waiting => "waiting",
        Group::Queued => "queued",
        Group::Ended => "ended",
    };
    Told { group, words: condition.words() }
}

/// What `outlast report --json` prints. The page leaves no mark of having been looked at.
fn report_of(world: &World, since: Option<&str>) -> Result<Value, Problem> {
    let since = since.map(duration::parse_since).transpose();
    let since = since.map_err(|why| Problem::refusal("bad_request", why))?;
    let mut made = Value::Null;
    block_on(async {
        let (facts, groups) = super::report::look(world, since).await?;
        made = report::json(&facts, &groups);
        Ok(0)
    })?;
    Ok(made)
}
