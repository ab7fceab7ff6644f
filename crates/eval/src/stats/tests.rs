use super::{power::simulate, *};

const STUDIES: u32 = 5_000;

/// A case whose trials pass with these percentages.
fn case(with: usize, without: usize) -> CaseModel {
    let scores = |percent: usize| {
        let score = |index| if index < percent { 1.0 } else { 0.0 };
        (0..100).map(score).collect()
    };
    CaseModel { with: scores(with), without: scores(without) }
}

/// Cases of different difficulty that a skill lifts by some points.
fn lifted(points: usize) -> Vec<CaseModel> {
    [10, 30, 50, 50, 70, 75, 80, 80].map(|without| case(without + points, without)).into()
}

/// Cases that pass in 70 of 100 trials, whatever the skill does.
fn flaky() -> Vec<CaseModel> {
    vec![case(70, 70); 6]
}

/// How many of the simulated studies pass.
fn passes(models: &[CaseModel], trials: u32, requirement: Requirement, seed: u64) -> f64 {
    let mut random = Random::new(seed);
    let mut count = 0;
    for _ in 0..STUDIES {
        let cases = simulate(models, trials, &mut random);
        count += usize::from(verdict(&cases, requirement).verdict == Verdict::Pass);
    }
    as_f64(count) / f64::from(STUDIES)
}

/// The upper bound of a share with a confidence of 99 %.
fn upper_99(share: f64) -> f64 {
    share + 2.326 * (share * (1.0 - share) / f64::from(STUDIES)).sqrt()
}

#[test]
fn false_pass_stays_below_six_percent() {
    let more = Requirement::MoreThan(0.0);
    let at_least = Requirement::AtLeast;
    for (name, models, requirement) in [
        ("no uplift", lifted(0), more),
        ("flaky", flaky(), more),
        // The gate asks for exactly what the skill gives, and for more than it gives.
        ("uplift of 5 at its bound", lifted(5), Requirement::MoreThan(0.05)),
        ("uplift of 20 at its bound", lifted(20), Requirement::MoreThan(0.2)),
        ("gate above the uplift", lifted(5), at_least(0.06)),
    ] {
        for trials in [2, 3, 5, 10] {
            let share = passes(&models, trials, requirement, 1);
            assert!(upper_99(share) < 0.06, "{name}, {trials} trials: {share}");
        }
    }
    for cases in [1, 2, 3] {
        let models = vec![case(50, 50); cases];
        for trials in [2, 3, 5, 10] {
            let share = passes(&models, trials, more, 2);
            assert!(upper_99(share) < 0.06, "{cases} cases, {trials} trials: {share}");
        }
    }
}

#[test]
fn power_is_what_a_report_promises() {
    let more = Requirement::MoreThan(0.0);
    for (models, requirement) in [
        (lifted(20), more),
        (lifted(20), Requirement::AtLeast(0.05)),
        (vec![case(90, 40); 4], more),
    ] {
        let promised = trials_needed(&models, requirement, 7).unwrap();
        assert!(promised.power >= 0.77, "{promised:?}");
        let measured = passes(&models, promised.trials, requirement, 11);
        assert!((measured - promised.power).abs() < 0.03, "{measured}: {promised:?}");
        // Half of the trials are not enough, so the number is not inflated.
        let half = passes(&models, promised.trials / 2, requirement, 11);
        assert!(half < 0.75, "{half}: {promised:?}");
    }
    for points in [0, 5] {
        let models = lifted(points);
        let predicted = predict_power(&models, 10, more, 3);
        let measured = passes(&models, 10, more, 4);
        assert!(measured <= predicted.power + 0.03, "{measured}: {predicted:?}");
    }
    assert_eq!(trials_needed(&lifted(0), more, 7), None);
}

#[test]
fn interval_covers_the_true_uplift() {
    for (models, uplift) in [(lifted(0), 0.0), (lifted(20), 0.2), (flaky(), 0.0)] {
        let mut random = Random::new(5);
        let mut covered = 0;
        for _ in 0..STUDIES {
            let found = interval(&simulate(&models, 5, &mut random)).unwrap();
            covered += usize::from(found.lower <= uplift && uplift <= found.upper);
        }
        let share = as_f64(covered) / f64::from(STUDIES);
        assert!(share > 0.94, "{uplift}: {share}");
    }
}

#[test]
fn sign_test_is_exact() {
    let test = sign_test(&[vec![1.0, 1.0, 0.0], vec![0.5, -1.0]]);
    assert_eq!((test.better, test.worse, test.equal), (3, 1, 1));
    assert!((test.p_better - 5.0 / 16.0).abs() < 1e-12, "{test:?}");
    assert!((test.p_worse - 15.0 / 16.0).abs() < 1e-12, "{test:?}");
    assert!((sign_test(&[vec![1.0; 6]]).p_better - 1.0 / 64.0).abs() < 1e-12);
    assert!((sign_test(&[]).p_better - 1.0).abs() < 1e-12);
    let many = sign_test(&[vec![1.0; 2_000], vec![-1.0; 2_000]]);
    assert!((many.p_better - 0.506).abs() < 0.001, "{many:?}");
}

#[test]
fn one_run_decides_nothing() {
    let decide = |cases: &[Vec<f64>]| verdict(cases, Requirement::MoreThan(0.0)).verdict;
    assert_eq!(decide(&vec![vec![1.0]; 50]), Verdict::Underpowered);
    assert_eq!(decide(&[]), Verdict::Underpowered);
    // Five equal pairs are not enough, six are.
    assert_eq!(decide(&[vec![1.0; 5]]), Verdict::Underpowered);
    assert_eq!(decide(&[vec![1.0; 6]]), Verdict::Pass);
    // Equal results do not show that there is no difference.
    assert_eq!(decide(&[vec![0.0; 6]]), Verdict::Underpowered);
    let found = interval(&[vec![0.0; 10]]).unwrap();
    assert!(
        (found.upper - 0.308).abs() < 0.001 && (found.lower + 0.308).abs() < 0.001,
        "{found:?}"
    );
    assert_eq!(decide(&[vec![-1.0; 6]]), Verdict::Fail);
}

#[test]
fn quantiles_of_student_are_those_of_the_tables() {
    for (degrees, expected) in
        [(0.4, 12.706), (1.0, 12.706), (2.9, 4.303), (30.0, 2.042), (40.0, 2.021), (1e9, 1.960)]
    {
        let found = t_quantile(degrees);
        assert!((found - expected).abs() < 0.002, "{degrees}: {found}");
    }
    let share = wilson(9, 10).unwrap();
    assert!(
        (share.lower - 0.596).abs() < 0.001 && (share.upper - 0.982).abs() < 0.001,
        "{share:?}"
    );
}
