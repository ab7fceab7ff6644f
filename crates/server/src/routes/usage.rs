//! Routes for the usage of models by day, and for the prices that turn it into costs.

use std::collections::{BTreeMap, BTreeSet};

use axum::{Json as JsonResponse, extract::State};
use savoir_store::{DayUsage, Timestamp, TokenSums};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::docs;
use crate::{
    app::App,
    auth::{Authenticated, Json},
    body::{Members, Shape, ShapeError},
    error::ApiResult,
    params::{Params, Query, QueryPairs},
    prices::{Price, Prices},
};

/// Maximum number of models with a price.
const MAX_PRICES: usize = 1000;
const SECONDS_OF_A_DAY: i64 = 86_400;
/// Models that were used in this many days are listed, so that they can get a price.
const PRICED_DAYS: i64 = 90;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(usage_by_day)).routes(routes!(list_prices, put_prices))
}

#[derive(Debug)]
struct UsageQuery {
    days: i64,
    by: String,
}

impl Params for UsageQuery {
    fn read(pairs: &mut QueryPairs) -> Self {
        Self {
            days: pairs.integer("days", 30, 1, 365),
            by: pairs.optional_text("by").unwrap_or_else(|| "model".to_owned()),
        }
    }
}

/// Requests and their costs.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
struct UsageTotals {
    input_tokens: u64,
    output_tokens: u64,
    requests: u64,
    /// The cost in US dollars; null if no price is known.
    cost_usd: Option<f64>,
}

impl UsageTotals {
    fn add(&mut self, tokens: TokenSums, cost: Option<f64>) {
        self.input_tokens = self.input_tokens.saturating_add(tokens.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(tokens.output_tokens);
        self.requests = self.requests.saturating_add(tokens.requests);
        if let Some(cost) = cost {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }
}

/// The requests of one model, provider or user.
#[derive(Debug, Serialize, ToSchema)]
struct UsageGroup {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(flatten)]
    totals: UsageTotals,
}

/// The requests of one day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UsageDay)]
struct DayReport {
    #[schema(format = Date)]
    date: String,
    groups: Vec<UsageGroup>,
}

#[derive(Debug, Serialize, ToSchema)]
struct UsageReport {
    days: Vec<DayReport>,
    groups: Vec<UsageGroup>,
    total: UsageTotals,
}

/// Show the usage of models by day.
#[utoipa::path(
    get, path = "/observability/usage", tag = "settings", security(("bearer" = [])),
    params(
        ("days" = Option<i64>, Query, minimum = 1, maximum = 365,
            description = "How many days back; the default is 30"),
        ("by" = Option<String>, Query,
            description = "`model`, `provider` or `user`; anything else counts as `model`")
    ),
    responses(
        (status = 200, body = UsageReport), docs::Unauthorized, docs::Forbidden, docs::InvalidBody,
        docs::TooManyRequests
    )
)]
async fn usage_by_day(
    State(app): State<App>,
    authenticated: Authenticated<Query<UsageQuery>>,
) -> ApiResult<JsonResponse<UsageReport>> {
    authenticated.caller.check_admin()?;
    let Query(UsageQuery { days, by }) = authenticated.body;
    let rows = app.database.usage().by_day(today() - days + 1).await?;
    let prices = Prices::load(&app.database).await?;
    let labels = match by.as_str() {
        "user" => emails(&app).await?,
        _ => BTreeMap::new(),
    };
    let key = |row: &DayUsage| match by.as_str() {
        "user" => row.user_id.map_or_else(String::new, |id| id.to_string()),
        "provider" => row.provider.clone(),
        _ => row.model.clone(),
    };
    Ok(JsonResponse(report(&rows, &prices, &labels, key)))
}

fn report(
    rows: &[DayUsage],
    prices: &Prices,
    labels: &BTreeMap<String, String>,
    key: impl Fn(&DayUsage) -> String,
) -> UsageReport {
    let mut total = UsageTotals::default();
    let mut groups: BTreeMap<String, UsageTotals> = BTreeMap::new();
    let mut days: BTreeMap<i64, BTreeMap<String, UsageTotals>> = BTreeMap::new();
    for row in rows {
        let TokenSums { input_tokens, output_tokens, .. } = row.tokens;
        let cost = prices.cost(&row.model, input_tokens, output_tokens);
        total.add(row.tokens, cost);
        groups.entry(key(row)).or_default().add(row.tokens, cost);
        days.entry(row.day).or_default().entry(key(row)).or_default().add(row.tokens, cost);
    }
    let list = |groups: BTreeMap<String, UsageTotals>| {
        let group = |(key, totals)| UsageGroup { label: labels.get(&key).cloned(), key, totals };
        groups.into_iter().map(group).collect()
    };
    let day = |(day, groups)| DayReport { date: date(day), groups: list(groups) };
    UsageReport { days: days.into_iter().map(day).collect(), groups: list(groups), total }
}

/// Days since 1970.
fn today() -> i64 {
    Timestamp::now().seconds() / SECONDS_OF_A_DAY
}

/// A day as `2026-11-18`.
fn date(day: i64) -> String {
    let midnight = Timestamp::from_micros(day.saturating_mul(SECONDS_OF_A_DAY * 1_000_000));
    midnight.to_string().chars().take("2026-11-18".len()).collect()
}

async fn emails(app: &App) -> ApiResult<BTreeMap<String, String>> {
    let users = app.database.accounts().list().await?;
    Ok(users.into_iter().map(|user| (user.id.to_string(), user.email)).collect())
}

/// The price of a model, in US dollars per million tokens.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelPrice)]
struct PriceItem {
    model: String,
    input_usd_per_million: Option<f64>,
    output_usd_per_million: Option<f64>,
    /// `settings` if an administrator entered it, `none` if the model is used and has no price.
    #[schema(pattern = "^(settings|none)$")]
    from: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ModelPriceList)]
struct PriceList {
    prices: Vec<PriceItem>,
}

/// The price of a model; null removes it.
#[derive(Debug, ToSchema)]
#[schema(as = NewModelPrice)]
struct NewPrice {
    #[schema(min_length = 1, max_length = 256)]
    model: String,
    #[schema(minimum = 0)]
    input_usd_per_million: Option<f64>,
    #[schema(minimum = 0)]
    output_usd_per_million: Option<f64>,
}

/// All prices. Models that are not listed lose their price.
#[derive(Debug, ToSchema)]
#[schema(as = NewModelPrices)]
struct NewPrices {
    #[schema(max_items = 1000)]
    prices: Vec<NewPrice>,
}

impl Shape for NewPrices {
    fn read(members: &mut Members) -> Self {
        let given = members.any("prices");
        let place = members.location_of("prices");
        let mut reject = |message: &str| {
            members.reject(ShapeError::new("value_error", place.clone(), message, given.clone()));
        };
        let prices = match given.as_array() {
            Some(list) if list.len() <= MAX_PRICES => list.iter().map(read_price).collect(),
            Some(_) => {
                reject("at most 1000 prices are allowed");
                Some(Vec::new())
            }
            None => None,
        };
        let prices = prices.unwrap_or_else(|| {
            reject("each price needs a `model` and amounts that are not negative");
            Vec::new()
        });
        Self { prices }
    }
}

fn read_price(value: &serde_json::Value) -> Option<NewPrice> {
    let amount = |key: &str| match value.get(key) {
        None | Some(serde_json::Value::Null) => Some(None),
        Some(given) => given.as_f64().filter(|given| (0.0..1e9).contains(given)).map(Some),
    };
    let model = value.get("model")?.as_str()?;
    (1..=256).contains(&model.chars().count()).then_some(())?;
    Some(NewPrice {
        model: model.to_owned(),
        input_usd_per_million: amount("input_usd_per_million")?,
        output_usd_per_million: amount("output_usd_per_million")?,
    })
}

/// List the prices of models: of those that were used, and of those that have one.
#[utoipa::path(
    get, path = "/admin/prices", tag = "admin", security(("bearer" = [])),
    responses(
        (status = 200, body = PriceList), docs::Unauthorized, docs::Forbidden, docs::TooManyRequests
    )
)]
async fn list_prices(
    State(app): State<App>,
    authenticated: Authenticated,
) -> ApiResult<JsonResponse<PriceList>> {
    authenticated.caller.check_admin()?;
    let prices = Prices::load(&app.database).await?;
    Ok(JsonResponse(price_list(&app, &prices).await?))
}

/// Replace the prices of models.
#[utoipa::path(
    put, path = "/admin/prices", tag = "admin", security(("bearer" = [])), request_body = NewPrices,
    responses(
        (status = 200, body = PriceList), docs::Unauthorized, docs::Forbidden, docs::TooLarge,
        docs::InvalidBody, docs::TooManyRequests
    )
)]
async fn put_prices(
    State(app): State<App>,
    authenticated: Authenticated<Json<NewPrices>>,
) -> ApiResult<JsonResponse<PriceList>> {
    let Authenticated { caller, body: Json(NewPrices { prices }) } = authenticated;
    caller.check_admin()?;
    let priced = prices.into_iter().map(|new| {
        let price = Price { input: new.input_usd_per_million, output: new.output_usd_per_million };
        (new.model, price)
    });
    let prices = Prices::new(priced);
    prices.save(&app.database).await?;
    tracing::info!(user = caller.user.id, "prices of models were changed");
    Ok(JsonResponse(price_list(&app, &prices).await?))
}

async fn price_list(app: &App, prices: &Prices) -> ApiResult<PriceList> {
    let used = app.database.usage().by_day(today() - PRICED_DAYS).await?;
    let names = used.into_iter().map(|row| row.model).chain(prices.models().cloned());
    let names: BTreeSet<String> = names.collect();
    let prices = names.into_iter().map(|model| {
        let price = prices.get(&model);
        PriceItem {
            input_usd_per_million: price.and_then(|price| price.input),
            output_usd_per_million: price.and_then(|price| price.output),
            from: if price.is_some() { "settings" } else { "none" },
            model,
        }
    });
    Ok(PriceList { prices: prices.collect() })
}
