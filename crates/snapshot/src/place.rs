//! Where a workspace's snapshots go: found once, before the first turn, and kept in a file of our own.
//!
//! Later snapshots ask nothing of the workspace's `.git`, which an agent can rewrite to point anywhere.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use outlast_wire::snapshot::{Orders, Place, Repository, Where};

use crate::Failure;
use crate::git::Git;

/// Of a list of what is ignored.
const LONGEST_EXCLUDE: u64 = 1 << 20;
const PLACE: &str = "place.json";
/// Switches off every conversion, whatever the attributes in the workspace say.
const ATTRIBUTES: &str = "* -text -eol -filter -ident -working-tree-encoding\n";
/// Settings of a repository that say how files are compared, and run nothing.
const HARMLESS: &str = "^core\\.(ignorecase|precomposeunicode)$";

/// What the process was started with, as far as it matters.
#[derive(Debug, Clone, Default)]
pub struct Around {
    pub path: OsString,
    pub home: Option<PathBuf>,
    pub config_home: Option<PathBuf>,
}

impl Around {
    pub fn of(env: &[(OsString, OsString)]) -> Self {
        let get = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let dir = |name| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            path: get("PATH").cloned().unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            home: dir("HOME"),
            config_home: dir("XDG_CONFIG_HOME"),
        }
    }
}

/// What the first snapshot found, if there has been one.
pub fn read(git_dir: &Path) -> Result<Option<Place>, Failure> {
    let bytes = match fs::read(git_dir.join(PLACE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::io("the place of the snapshots")(error)),
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| Failure::Unreadable(format!("{PLACE} of the snapshots: {error}")))
}

/// The place of a run's snapshots, with its git directory made.
pub(crate) fn open(orders: &Orders, around: &Around) -> Result<Place, Failure> {
    refuse(orders, around)?;
    if let Some(place) = read(&orders.git_dir)? {
        return Ok(place);
    }
    let place = find(orders, around)?;
    make_dir(&orders.git_dir)?;
    let settings = place.repository.as_ref().map(|it| settings(around, &it.common)).transpose()?;
    fill(&orders.git_dir, &place, settings.as_deref().unwrap_or_default())?;
    write(&orders.git_dir.join("info/exclude"), &excludes(orders, around, &place)?)?;
    // The last file: with it the directory is whole.
    let json = serde_json::to_vec(&place)
        .map_err(|error| Failure::Unreadable(format!("the place of the snapshots: {error}")))?;
    write(&orders.git_dir.join(PLACE), &json)?;
    Ok(place)
}

/// Places that hold more than the work of a run.
fn refuse(orders: &Orders, around: &Around) -> Result<(), Failure> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = fs::canonicalize(&orders.dir).map_err(Failure::io("the workspace"))?;
    if dir.parent().is_none() {
        return Err(Failure::Never("the root directory has no snapshots"));
    }
    if orders.state.iter().any(|state| real(state).starts_with(&dir)) {
        return Err(Failure::Never("a directory that holds Outlast's own state has no snapshots"));
    }
    if around.home.as_ref().is_some_and(|home| real(home).starts_with(&dir)) {
        return Err(Failure::Never("a home directory has no snapshots"));
    }
    Ok(())
}

fn find(orders: &Orders, around: &Around) -> Result<Place, Failure> {
    let dir = fs::canonicalize(&orders.dir).map_err(Failure::io("the workspace"))?;
    let own = || Place {
        top: dir.clone(),
        prefix: String::new(),
        format: "sha1".to_owned(),
        repository: None,
        remote: None,
    };
    if orders.store == Where::Own {
        return Ok(own());
    }
    let git = Git::around(&around.path, &orders.dir, &dir);
    let asked = ["rev-parse", "--is-inside-work-tree"];
    let is_inside = git.line(&asked);
    match is_inside {
        Ok(answer) if answer == "true" => {}
        Err(Failure::NoGit) => return Err(Failure::NoGit),
        // No repository, or a bare one.
        Ok(_) | Err(_) => return Ok(own()),
    }
    let path = |what: &[&str]| git.run(what).map(|printed| path_of(&printed));
    let top = path(&["rev-parse", "--path-format=absolute", "--show-toplevel"])?;
    let admin = path(&["rev-parse", "--absolute-git-dir"])?;
    let common = path(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    let format = git.line(&["rev-parse", "--show-object-format"])?;
    let owner = fs::metadata(&common).map_err(Failure::io("the repository"))?.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return Err(Failure::Foreign(common));
    }
    let below = dir.strip_prefix(&top).map_err(|_| Failure::Unreadable(outside(&dir, &top)))?;
    let prefix = below.to_str().ok_or_else(|| Failure::Unreadable(outside(&dir, &top)))?;
    if !prefix.is_empty() && git.clone().plainly().maybe(&["check-ignore", "-q", "."])?.is_some() {
        // A directory that the repository does not want to know of.
        return Ok(own());
    }
    let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    let remote = git.maybe(&["config", "--get", "remote.origin.url"])?;
    let remote = remote.map(|url| String::from_utf8_lossy(&url).trim_end().to_owned());
    Ok(Place { top, prefix, format, repository: Some(Repository { admin, common }), remote })
}

fn outside(dir: &Path, top: &Path) -> String {
    format!("{} is not below {}", dir.display(), top.display())
}

fn path_of(printed: &[u8]) -> PathBuf {
    let line = printed.strip_suffix(b"\n").unwrap_or(printed);
    PathBuf::from(OsString::from_vec(line.to_vec()))
}

/// Makes a git directory without an index. Everything in it is ours.
pub(crate) fn fill(git_dir: &Path, place: &Place, settings: &str) -> Result<(), Failure> {
    for name in ["refs", "objects", "info"] {
        make_dir(&git_dir.join(name))?;
    }
    let (version, extension) = match place.format.as_str() {
        "sha1" => (0, ""),
        "sha256" => (1, "[extensions]\nobjectformat = sha256\n"),
        other => return Err(Failure::Unreadable(format!("objects of the format {other}"))),
    };
    let config = format!(
        "{extension}[core]\nrepositoryformatversion = {version}\nbare = false\nuntrackedCache = true\n\
         protectHFS = false\nprotectNTFS = false\n{settings}[index]\nversion = 4\nskipHash = true\n\
         [status]\nshowUntrackedFiles = all\n"
    );
    write(&git_dir.join("config"), config.as_bytes())?;
    write(&git_dir.join("info/attributes"), ATTRIBUTES.as_bytes())?;
    write(&git_dir.join("HEAD"), UNBORN)
}

pub(crate) const UNBORN: &[u8] = b"ref: refs/heads/unborn\n";

/// The few booleans of a repository that hold for us too.
fn settings(around: &Around, common: &Path) -> Result<String, Failure> {
    let git = Git::around(&around.path, common, common);
    let file = common.join("config");
    let args = [
        OsStr::new("config"),
        OsStr::new("--file"),
        file.as_os_str(),
        OsStr::new("--type=bool"),
        OsStr::new("--get-regexp"),
        OsStr::new(HARMLESS),
    ];
    let printed = git.maybe(&args)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&printed).into_owned();
    let lines = text.lines().filter_map(|line| line.strip_prefix("core.")?.split_once(' '));
    Ok(lines.map(|(key, value)| format!("{key} = {value}\n")).collect())
}

/// What is ignored beside the `.gitignore` files: the user's list for all repositories, this repository's, the run's.
fn excludes(orders: &Orders, around: &Around, place: &Place) -> Result<Vec<u8>, Failure> {
    let mut lists = Vec::new();
    lists.extend(global_excludes(around)?.map(|path| read_list(&path)).transpose()?);
    if let Some(repository) = &place.repository {
        lists.push(read_list(&repository.common.join("info/exclude"))?);
    }
    lists.extend(orders.exclude.iter().map(|pattern| pattern.as_bytes().to_vec()));
    Ok(lists.join(&b'\n'))
}

fn global_excludes(around: &Around) -> Result<Option<PathBuf>, Failure> {
    let Some(home) = &around.home else { return Ok(None) };
    let config = around.config_home.clone().unwrap_or_else(|| home.join(".config"));
    for file in [home.join(".gitconfig"), config.join("git/config")] {
        if !file.is_file() {
            continue;
        }
        let git = Git::around(&around.path, home, home);
        let args = [
            OsStr::new("config"),
            OsStr::new("--file"),
            file.as_os_str(),
            OsStr::new("--type=path"),
            OsStr::new("--get"),
            OsStr::new("core.excludesFile"),
        ];
        if let Some(printed) = git.maybe(&args)? {
            return Ok(Some(home.join(path_of(&printed))));
        }
    }
    Ok(Some(config.join("git/ignore")))
}

/// A list that is not there is empty; one that cannot be read fails the snapshot, which would hold too much without it.
fn read_list(path: &Path) -> Result<Vec<u8>, Failure> {
    let what = || format!("the list of ignored files {}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::io(what())(error)),
    };
    let mut bytes = Vec::new();
    file.take(LONGEST_EXCLUDE).read_to_end(&mut bytes).map_err(Failure::io(what()))?;
    Ok(bytes)
}

pub(crate) fn make_dir(path: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(Failure::io(format!("making {}", path.display())))
}

/// Writes a file whole: a reader sees the old one or the new one.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let aside = path.with_file_name(name);
    let written =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside);
    written
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&aside, path))
        .map_err(Failure::io(format!("writing {}", path.display())))
}

/// Removes a file that may not be there.
pub(crate) fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io(format!("removing {}", path.display()))(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes a directory of ours that may not be there.
pub(crate) fn clear(dir: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io("removing a scratch directory")(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(crate) fn path_in(top: &Path, name: &[u8]) -> PathBuf {
    top.join(OsStr::from_bytes(name))
}
