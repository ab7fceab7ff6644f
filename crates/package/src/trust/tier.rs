//! The effective tier of a skill.

use savoir_skill::Dialect;

use super::{Tier, effective};

/// How far a skill is trusted: never more than its signatures attest, and never more than it claims.
///
/// A dialect that has no word for a tier lets nobody claim one, so signatures alone count there. Where
/// there is such a word, the reader of the dialect says what it means not to use it.
pub fn tier(dialect: Dialect, claimed: Option<Tier>, attested: Tier) -> Tier {
    if !dialect.running().attestable {
        return Tier::Experimental;
    }
    claimed.map_or(attested, |claimed| effective(claimed, attested))
}

#[cfg(test)]
mod tests {
    use Tier::{Community, Experimental, Verified};

    use super::*;

    #[test]
    fn the_lower_of_claim_and_attestation() {
        for (dialect, claimed, attested, counts) in [
            (Dialect::GAIA, Some(Verified), Verified, Verified),
            (Dialect::GAIA, Some(Verified), Community, Community),
            (Dialect::GAIA, Some(Verified), Experimental, Experimental),
            (Dialect::GAIA, Some(Community), Verified, Community),
            (Dialect::GAIA, Some(Experimental), Verified, Experimental),
            (Dialect::AGENTSKILLS, None, Verified, Verified),
            (Dialect::CLAUDE_CODE, None, Community, Community),
            (Dialect::GIBBERISH, None, Experimental, Experimental),
            (Dialect::OPENCLAW, None, Verified, Experimental),
            (Dialect::OPENCLAW, Some(Verified), Verified, Experimental),
        ] {
            let case = format!("{dialect:?} {claimed:?} {attested}");
            assert_eq!(tier(dialect, claimed, attested), counts, "{case}");
        }
    }

    /// The specification: who does not say it is experimental.
    #[test]
    fn gaia_always_claims() {
        let text = "---\nname: demo\ndescription: Says hello. Use when greeting.\nmetadata:\n  gaia:\n    permissions: []\n---\n";
        let source = savoir_skill::Source::from_bytes(text.as_bytes().to_vec()).unwrap();
        let skill = savoir_skill::read(source, None).skill;
        assert_eq!((skill.dialect, skill.policy.tier), (Dialect::GAIA, Some(Experimental)));
    }
}
