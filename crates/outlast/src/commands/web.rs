//! `outlast web`: the page that a browser on this machine shows, and links to it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_web::{Certificate, Link, Place, Proxy, Role, Serving, Told, Wanted, Words};
use outlast_wire::api::{RunRow, RunView};
use outlast_wire::codes::Code;
use outlast_workflow::{WebProxy, WebRoles};
use serde_json::{Value, json};

use super::{block_on, events, run};
use crate::args::{Web, WebCommand};
use crate::attention::Group;
use crate::output::page::quoted;
use crate::output::state::Condition;
use crate::output::table::{Cell, Column, Look, Table};
use crate::signals::Detach;
use crate::world::World;
use crate::{Answer, duration, loop_file, output, report};

pub(crate) async fn web(world: &World, args: Web) -> Answer {
    match args.command {
        Some(WebCommand::Url { json, qr }) => url(world, json, qr),
        Some(WebCommand::Share { run, hours, no_output, json }) => {
            share(world, &run, hours, Shows::new(no_output), json).await
        }
        Some(WebCommand::Shares { json }) => shares(world, json),
        Some(WebCommand::Unshare { which, json }) => unshare(world, &which, json).await,
        None => serve(world, args).await,
    }
}

/// Whether a read-only link shows what the run wrote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    Output,
    NoOutput,
}

impl Shows {
    fn new(no_output: bool) -> Self {
        if no_output { Self::NoOutput } else { Self::Output }
    }
}

async fn share(world: &World, run: &str, hours: u32, shows: Shows, json: bool) -> Answer {
    let view: RunView = Session::new(&world.client).call(&Ask::get(&run_path(run, ""))).await?;
    let wanted = Wanted { run: view.id, hours, output: shows == Shows::Output };
    let (link, shared) = outlast_web::desk::share(world.client.layout()?, wanted)?;
    if json {
        output::print_json(&json!({
            "url": link.here, "public_url": link.public, "id": shared.id, "run": shared.run,
            "output": shared.output, "left_s": shared.left_s,
        }))?;
        return Ok(0);
    }
    output::print_line(&link.here)?;
    link.public.iter().try_for_each(|link| output::print_line(link))?;
    output::tell(&format!(
        "Read only, for {hours}h or until outlast web ends; outlast web unshare {} revokes it.",
        shared.id
    ));
    Ok(0)
}

fn shares(world: &World, json: bool) -> Answer {
    let list = outlast_web::desk::shares(world.client.layout()?)?;
    if json {
        output::print_json(&list)?;
        return Ok(0);
    }
    let column = |title, narrowest| Column { title, narrowest };
    let columns = [column("ID", 8), column("RUN", 12), column("SHOWS", 9), column("LEFT", 6)];
    let mut table = Table::new(columns.to_vec());
    for it in &list {
        let shows = if it.output { "output" } else { "no output" };
        let left = outlast_workflow::duration::short(it.left_s * 1000);
        table.push([&it.id, &it.run, shows, &left].map(Cell::new).to_vec());
    }
    let look = Look { columns: world.columns(), colours: world.colours() };
    output::print(&table.render(look))?;
    Ok(0)
}

async fn unshare(world: &World, which: &str, json: bool) -> Answer {
    let layout = world.client.layout()?;
    let mut ended = outlast_web::desk::unshare(layout, which)?;
    if ended.is_empty() {
        // A run may be meant, by its name or the start of its id. One that is not known has no links; of one that
        // cannot be asked about that is not known.
        let ask = Ask::get(&run_path(which, ""));
        match Session::new(&world.client).call::<RunView>(&ask).await {
            Ok(run) => ended = outlast_web::desk::unshare(layout, &run.id)?,
            Err(problem) if problem.is(Code::UnknownRun) => {}
            Err(problem) => return Err(problem),
        }
    }
    if ended.is_empty() {
        let message = format!("there is no read-only link {which}");
        return Err(Problem::refusal("unknown_link", message).hint("outlast web shares"));
    }
    if json {
        output::print_json(&ended)?;
        return Ok(0);
    }
    ended.iter().try_for_each(|it| output::print_line(&format!("revoked {}", it.id)))?;
    Ok(0)
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
        proxy: proxy(web.proxy, web.roles)?,
    })
}

/// The proxy that names people; none without all three of its settings.
fn proxy(proxy: WebProxy, roles: WebRoles) -> Result<Option<Proxy>, Problem> {
    let (user, header, file) = match (proxy.user_header, proxy.secret_header, proxy.secret_file) {
        (None, None, None) => return Ok(None),
        (Some(user), Some(header), Some(file)) => (user, header, file),
        _ => {
            let message = "user_header, secret_header and secret_file of web.proxy in config.toml need each other";
            return Err(Problem::refusal("bad_config", message).hint("outlast config check"));
        }
    };
    let secret = shared_secret(Path::new(&file))?;
    let of = |names: Vec<String>, role| names.into_iter().map(move |name| (name, role));
    let admins = of(roles.admin, Role::Admin).chain(of(roles.operator, Role::Operator));
    let roles = admins.chain(of(roles.viewer, Role::Viewer)).collect();
    Proxy::new(&user, &header, secret.trim_end_matches(['\n', '\r']), roles).map(Some)
}

/// The secret of a file that only this user can read: another user of the machine could name any person with it.
fn shared_secret(file: &Path) -> Result<String, Problem> {
    let bad = |why: &dyn std::fmt::Display| {
        let message = format!("web.proxy.secret_file {}: {why}", file.display());
        Problem::refusal("bad_config", message)
    };
    let bytes = outlast_home::regular::read(file).map_err(|error| bad(&error))?;
    let mode = std::fs::metadata(file).map_err(|error| bad(&error))?.permissions().mode();
    if mode & 0o077 != 0 {
        let hint = format!("chmod 600 {}", quoted(&file.display().to_string()));
        return Err(bad(&"other users may read it").hint(hint));
    }
    String::from_utf8(bytes).map_err(|_| bad(&"it is not text"))
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
