//! Help: every page as it is printed, on 80 columns and on 120.

use crate::harness::{Home, skip, text};

/// The page that the program prints on a terminal of this width, or in a pipe with this `COLUMNS`.
fn page(home: &Home, verbs: &[&str], columns: &str) -> String {
    let mut command = home.outlast(&[&["help"], verbs].concat());
    let output = command.env("COLUMNS", columns).output().expect("the program starts");
    assert!(output.status.success(), "{verbs:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The verbs that a page lists: two blanks, a word, blanks, words; those of `Options:` begin with a dash.
fn listed(page: &str) -> Vec<String> {
    let before = page.split("Options:").next().unwrap_or_default();
    let verbs = before.lines().filter_map(|line| line.strip_prefix("  "));
    let verbs = verbs.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    verbs.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_help_page_fits_80_columns_and_is_as_it_was() {
    let home = Home::new();
    let mut pages = vec![Vec::new()];
    let mut count = 0;
    while let Some(verbs) = pages.pop() {
        let words: Vec<&str> = verbs.iter().map(String::as_str).collect();
        let narrow = page(&home, &words, "80");
        assert_eq!(narrow, page(&home, &words, "120"), "help is the same on a wider terminal");
        for line in narrow.lines() {
            assert!(line.chars().count() <= 80, "{verbs:?}: wider than 80 columns: {line}");
            assert_eq!(line, line.trim_end(), "{verbs:?}: blanks at the end of a line");
        }
        for verb in listed(&narrow).into_iter().filter(|verb| verb != "outlast") {
            pages.push(verbs.iter().cloned().chain([verb]).collect());
        }
        let name = [&["help"], words.as_slice()].concat().join("_");
        insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../help", omit_expression => true }, {
            insta::assert_snapshot!(name, narrow);
        });
        count += 1;
    }
    assert!(count > 45, "only {count} pages were found");
}

#[test]
fn help_of_a_verb_is_what_its_option_prints() {
    let home = Home::new();
    assert_eq!(home.ok(&["help", "run"]), home.ok(&["run", "--help"]));
    assert_eq!(home.ok(&["help", "schedule", "add"]), home.ok(&["schedule", "add", "-h"]));
    assert_eq!(home.ok(&["help", "ls"]), home.ok(&["ps", "--help"]), "another name of ps");
    assert!(home.fails(2, &["help", "shwo"]).contains("did you mean:\n  outlast show"));
}

#[test]
fn a_command_runs_without_dashes_before_it() {
    let home = Home::new();
    assert_eq!(home.ok(&["run", "echo", "-n", "--json", "hi"]), "--json hi");
    assert!(home.fails(2, &["run", "--nope", "echo"]).contains("unknown option '--nope'"));
}

#[test]
fn a_loop_file_that_is_typed_as_a_command_is_refused_with_its_option() {
    let home = Home::new();
    std::fs::write(home.scratch().join("WORKFLOW.md"), "---\nagent: {}\n---\nhi\n")
        .expect("written");
    let said = home.fails(2, &["run", "WORKFLOW.md"]);
    assert!(said.contains("hint: outlast run -f WORKFLOW.md"), "{said}");
}

#[test]
fn other_names_of_verbs_do_the_same() {
    let home = Home::new();
    let id = home.start("sleep 1000");
    assert_eq!(home.ok(&["ls"]).lines().count(), 2);
    assert_eq!(home.json(&["status", &id, "--json"])["id"], id.as_str());
    home.ok(&["kill", &id]);
    assert_eq!(home.show(&id)["state"], "stopped");
}

#[test]
fn manual_pages_are_written_where_asked_and_make_no_formatter_warn() {
    let home = Home::new();
    let dir = home.scratch().join("share/man/man1");
    let said = home.ok(&["man", &dir.display().to_string()]);
    assert!(said.starts_with("wrote ") && said.contains("man5"), "{said}");
    let pages = |dir: &std::path::Path| {
        let entries = std::fs::read_dir(dir).expect("it was made");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let all = [pages(&dir), pages(&dir.with_file_name("man5"))].concat();
    assert!(all.len() > 45, "{} pages", all.len());
    if home.command("groff").arg("--version").output().is_err() {
        return skip("there is no groff to format the pages with");
    }
    for page in all {
        let output =
            home.command("groff").args(["-man", "-Tascii", "-ww", "-rLL=80n"]).arg(&page).output();
        let output = output.expect("there is a groff");
        assert_eq!(text(&output.stderr), "", "{}", page.display());
    }
}
