//! `outlast answer`: what a run that is blocked on a person asked for.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{self, AnswerRun, RunView};

use crate::output::waiting;
use crate::world::World;
use crate::{Answer, args, loop_file, output, text};

pub(crate) async fn answer(world: &World, args: args::Answer) -> Answer {
    let (run, json, seq) = (args.run.clone(), args.json, args.seq);
    let answer = chosen(args)?;
    let mut session = Session::new(&world.client);
    let view: RunView = session.call(&Ask::get(&run_path(&run, ""))).await?;
    // Without a question the daemon says why nothing can be answered.
    let seq = seq.or(view.asks.map(|asked| asked.seq));
    let order = AnswerRun { id: Some(run_id::new()?), seq, answer };
    let view: RunView = session.call(&Ask::post(&run_path(&view.id, "/answer"), &order)).await?;
    loop_file::mention_wrong_config(world)?;
    if json {
        output::print_json(&view)?;
    } else {
        output::print_line(&format!("answered {}", output::called(&view)))?;
        waiting::tell_if(&view, world)?;
    }
    Ok(0)
}

fn chosen(args: args::Answer) -> Result<api::Answer, Problem> {
    match (args.approve, args.deny, args.text) {
        (true, _, _) => Ok(api::Answer::Approve),
        (_, true, _) => Ok(api::Answer::Deny),
        (_, _, Some(given)) => Ok(api::Answer::Text(text::given(given)?)),
        (false, false, None) => unreachable!("one of them is required"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn each_answer_is_sent_as_what_it_is() {
        let sent = |arg: &str| {
            let cli = Cli::try_parse_from(["outlast", "answer", "k3m", arg]).expect("an answer");
            let Command::Answer(args) = cli.command else { panic!("an answer") };
            let answer = chosen(args).expect("an answer");
            serde_json::to_string(&AnswerRun { id: None, seq: None, answer }).expect("plain data")
        };
        assert_eq!(sent("--approve"), r#"{"id":null,"answer":"approve"}"#);
        assert_eq!(sent("--deny"), r#"{"id":null,"answer":"deny"}"#);
        assert_eq!(sent("approve"), r#"{"id":null,"answer":{"text":"approve"}}"#);
    }
}
