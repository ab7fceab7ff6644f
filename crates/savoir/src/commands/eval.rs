//! `savoir eval`: measures whether a skill helps, and when it is used.

mod create;
mod diff;
mod list;
mod render;
mod run;
mod sign;

use std::{path::PathBuf, process::ExitCode};

use savoir_eval::{
    analyze::Prices,
    gate::Gate,
    limits::{MAX_TRIALS, TRIAL_SECONDS},
    run::agent_ids,
};

use crate::error::CommandError;

/// Measure whether a skill helps and when it is used
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Each case of the skill's evals/evals.json runs several times with the skill and without it, each
trial in a folder of its own. Commands run in the sandbox without network. Finished trials are
stored, so the same command continues an interrupted evaluation.

Examples:
  savoir eval new my-skill                    write evals/evals.json to edit
  savoir eval my-skill --model ollama:qwen3
  savoir eval my-skill --trials 10 --gate \"uplift>=5 regressions=0\"
  savoir eval my-skill --gate \"precision>=80 recall>=80\"
  savoir eval my-skill --replay results/      grade recorded trials again, without a model
  savoir eval my-skill --host claude-code     with Claude Code instead of Savoir's agent
  savoir eval diff before/ after/

Exit codes: 0 done, and the gate passes if there is one; 1 the gate does not pass, or no trial is
valid; 2 wrong usage or unreadable input."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    New(create::Args),
    Diff(diff::Args),
    Sign(sign::Args),
    List(list::Args),
    Show(list::ShowArgs),
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Folder of a skill
    #[arg(required = true)]
    path: Option<PathBuf>,
    /// Agent that runs the trials
    #[arg(long, value_name = "AGENT", default_value = SAVOIR, value_parser = hosts())]
    host: String,
    /// Model of the agent: PROVIDER:MODEL or a name, or a name that another agent knows
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Model that judges assertions in prose [default: the model of Savoir's agent]
    #[arg(long, value_name = "MODEL")]
    judge: Option<String>,
    /// Trials of each case, with the skill and without it
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TRIALS)))]
    trials: u32,
    /// Also compare with another version of the skill
    #[arg(long, value_name = "DIR")]
    previous: Option<PathBuf>,
    /// Also run with the skills below this folder in the catalog
    #[arg(long, value_name = "DIR")]
    decoys: Option<PathBuf>,
    /// Condition to exit with 0, for example "uplift>=5 regressions=0"
    #[arg(long, value_name = "CONDITION")]
    gate: Option<Gate>,
    /// Trials at the same time
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Seconds after which a trial is given up and does not count
    #[arg(long, value_name = "SECONDS", default_value_t = TRIAL_SECONDS,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    trial_timeout: u64,
    /// Start no trial after this number of tokens, sent and received
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<u64>,
    /// Start no trial after this number of seconds
    #[arg(long, value_name = "SECONDS")]
    max_time: Option<u64>,
    /// Start no trial after this number of dollars
    #[arg(long, value_name = "DOLLARS", requires = "price", value_parser = dollars)]
    max_cost: Option<f64>,
    /// Dollars per million tokens, sent and received, for example 3/15
    #[arg(long, value_name = "INPUT/OUTPUT", value_parser = prices)]
    price: Option<Prices>,
    /// Folder for the results [default: a new folder in the data folder of Savoir]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Grade the recorded trials in this folder again, without a model
    #[arg(long, value_name = "DIR", conflicts_with_all = ["host", "model", "judge", "previous", "decoys", "max_tokens", "max_time", "max_cost", "price"])]
    replay: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Savoir's own agent.
const SAVOIR: &str = "savoir";

fn hosts() -> clap::builder::PossibleValuesParser {
    std::iter::once(SAVOIR).chain(agent_ids()).collect::<Vec<_>>().into()
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount: f64 = text.parse().map_err(|_| "write a number, for example 2.50".to_owned())?;
    if amount.is_finite() && amount >= 0.0 {
        Ok(amount)
    } else {
        Err("it must be at least 0".to_owned())
    }
}

fn prices(text: &str) -> Result<Prices, String> {
    let (input, output) = text.split_once('/').ok_or("write INPUT/OUTPUT, for example 3/15")?;
    Ok(Prices { input: dollars(input)?, output: dollars(output)? })
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Some(Command::New(args)) => create::run(args),
        Some(Command::Diff(args)) => diff::run(args),
        Some(Command::Sign(args)) => sign::run(args),
        Some(Command::List(args)) => list::run(args),
        Some(Command::Show(args)) => list::show(args),
        None => run::run(&args.run),
    }
}
