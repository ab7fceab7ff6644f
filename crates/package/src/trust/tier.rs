//! Computes the effective tier of a skill.

use savoir_skill::Dialect;

use super::{Tier, effective};

/// Returns the effective trust tier of a skill: at most the tier that its signatures attest, and at
/// most the tier that it claims.
///
/// In a dialect without a field for the tier, only the signatures count. In a dialect with such a
/// field, the reader of the dialect defines the meaning of a missing field.
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
    fn tier_is_lower_of_claim_and_attestation() {
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

    /// By the specification, a GAIA skill without a claimed tier is experimental.
    #[test]
    fn gaia_skill_without_tier_is_experimental() {
        let text = "---\nname: demo\ndescription: Says hello. Use when greeting.\nmetadata:\n  gaia:\n    permissions: []\n---\n";
        let source = savoir_skill::Source::from_bytes(text.as_bytes().to_vec()).unwrap();
        let skill = savoir_skill::read(source, None).skill;
        assert_eq!((skill.dialect, skill.policy.tier), (Dialect::GAIA, Some(Experimental)));
    }
}
