//! Maps secrets in environment variables to the service that they belong to, and to its hosts.

use super::host;

/// A word in the name of a variable, and the hosts of the service that its secret belongs to.
const SERVICES: &[(&str, &[&str])] = &[
    ("OPENAI", &["openai.com", "openai.azure.com", "chatgpt.com"]),
    ("ANTHROPIC", &["anthropic.com", "claude.ai", "claude.com"]),
    ("CLAUDE", &["anthropic.com", "claude.ai", "claude.com"]),
    ("GEMINI", &["googleapis.com", "google.com", "google.dev"]),
    ("GOOGLE", &["googleapis.com", "google-analytics.com", "google.com", "google.dev", "run.app"]),
    ("GITHUB", &["github.com", "githubusercontent.com", "ghcr.io", "github.io"]),
    ("GH", &["github.com", "githubusercontent.com", "ghcr.io"]),
    ("GITLAB", &["gitlab.com"]),
    ("AWS", &["amazonaws.com", "aws.amazon.com", "amazon.com", "api.aws"]),
    ("AZURE", &["azure.com", "microsoft.com", "windows.net", "microsoftonline.com", "azure.net"]),
    (
        "CLOUDFLARE",
        &["cloudflare.com", "cloudflare-eth.com", "r2.cloudflarestorage.com", "workers.dev"],
    ),
    ("CF", &["cloudflare.com", "workers.dev"]),
    ("STRIPE", &["stripe.com"]),
    ("SLACK", &["slack.com", "slack-edge.com", "slack-files.com"]),
    ("DISCORD", &["discord.com", "discordapp.com", "discord.gg"]),
    ("TELEGRAM", &["telegram.org"]),
    ("NPM", &["npmjs.org", "npmjs.com"]),
    ("PYPI", &["pypi.org"]),
    ("TWINE", &["pypi.org"]),
    ("HF", &["huggingface.co", "hf.co", "hf.space"]),
    ("HUGGINGFACE", &["huggingface.co", "hf.co", "hf.space"]),
    ("HUGGING", &["huggingface.co", "hf.co", "hf.space"]),
    ("REPLICATE", &["replicate.com"]),
    ("SENDGRID", &["sendgrid.com"]),
    ("TWILIO", &["twilio.com"]),
    ("NOTION", &["notion.com", "notion.so"]),
    ("LINEAR", &["linear.app"]),
    ("JIRA", &["atlassian.net", "atlassian.com"]),
    ("ATLASSIAN", &["atlassian.net", "atlassian.com"]),
    ("HEROKU", &["heroku.com", "herokuapp.com"]),
    ("VERCEL", &["vercel.com", "vercel.app"]),
    ("NETLIFY", &["netlify.com", "netlify.app"]),
    ("DIGITALOCEAN", &["digitalocean.com", "digitaloceanspaces.com"]),
    ("DATADOG", &["datadoghq.com", "datadoghq.eu", "ddog-gov.com"]),
    ("SENTRY", &["sentry.io", "sentry.dev"]),
    ("SUPABASE", &["supabase.co", "supabase.com"]),
    ("MISTRAL", &["mistral.ai"]),
    ("GROQ", &["groq.com"]),
    ("COHERE", &["cohere.ai", "cohere.com"]),
    ("OPENROUTER", &["openrouter.ai"]),
    ("DEEPSEEK", &["deepseek.com"]),
    ("PERPLEXITY", &["perplexity.ai"]),
    ("ELEVENLABS", &["elevenlabs.io"]),
    ("TAVILY", &["tavily.com"]),
    ("PINECONE", &["pinecone.io"]),
    ("SHOPIFY", &["shopify.com", "myshopify.com"]),
    ("PAYPAL", &["paypal.com"]),
    ("BINANCE", &["binance.com", "binance.us", "binance.vision"]),
    ("COINBASE", &["coinbase.com"]),
    ("DOCKER", &["docker.com", "docker.io"]),
    ("KUBE", &["kubernetes.default.svc"]),
    ("DROPBOX", &["dropboxapi.com", "dropbox.com"]),
    ("FIGMA", &["figma.com"]),
    ("AIRTABLE", &["airtable.com"]),
    ("HUBSPOT", &["hubapi.com", "hubspot.com"]),
    ("SALESFORCE", &["salesforce.com", "force.com"]),
    ("ZOOM", &["zoom.us"]),
    ("SPOTIFY", &["spotify.com"]),
    ("TWITTER", &["twitter.com", "x.com"]),
    ("LINKEDIN", &["linkedin.com"]),
    ("FACEBOOK", &["facebook.com", "fb.com"]),
    ("MAILGUN", &["mailgun.net", "mailgun.org"]),
    ("MAILCHIMP", &["mailchimp.com"]),
    ("RESEND", &["resend.com"]),
    ("CIRCLECI", &["circleci.com"]),
    ("SNYK", &["snyk.io"]),
    ("SONAR", &["sonarcloud.io", "sonarqube.org"]),
    ("PLAID", &["plaid.com"]),
    ("ALPACA", &["alpaca.markets"]),
    ("WIX", &["wix.com", "wixapis.com"]),
];

/// Services that companies also run on their own servers.
const SELF_HOSTED_SERVICES: [&str; 14] = [
    "GITHUB", "GITLAB", "GH", "JIRA", "ATLASSIAN", "SENTRY", "SUPABASE", "SONAR", "KUBE", "DOCKER",
    "NPM", "PYPI", "AZURE", "SHOPIFY",
];

/// Returns the hosts of the service that the secret in a variable belongs to, judging by its name.
fn own_hosts(variable: &str) -> Option<&'static [&'static str]> {
    let upper = variable.to_ascii_uppercase();
    let mut words = upper.split('_');
    words.find_map(|word| SERVICES.iter().find(|(name, _)| *name == word).map(|(_, hosts)| *hosts))
}

/// Whether an upper-case word is the name of a service.
pub(super) fn is_service_name(word: &str) -> bool {
    SERVICES.iter().any(|(name, _)| *name == word)
}

/// Returns the service whose name a foreign host imitates: `slack-edge.example`.
pub(super) fn imitated_service(url: &str) -> Option<&'static str> {
    let host = host::host_of_url(url)?;
    if is_known_host(url) || host::reputation(url) == host::HostReputation::Local {
        return None;
    }
    // Only the domain itself counts, because its owner can choose any subdomain.
    let label = host.rsplit('.').nth(1)?;
    let words: Vec<&str> = label.split('-').collect();
    if words.len() < 2 || label.contains(['{', '$', '<']) {
        return None;
    }
    let (name, _) = SERVICES.iter().find(|(name, _)| {
        name.len() > 4 && words.iter().any(|word| word.eq_ignore_ascii_case(name))
    })?;
    Some(name)
}

/// Whether a URL belongs to one of the known services.
pub(super) fn is_known_host(url: &str) -> bool {
    let Some(host) = host::host_of_url(url) else { return false };
    SERVICES.iter().flat_map(|(_, hosts)| *hosts).any(|known| {
        host == *known || host.strip_suffix(known).is_some_and(|before| before.ends_with('.'))
    })
}

/// Returns the service that the secret in a variable belongs to.
pub(super) fn service_of_secret(variable: &str) -> Option<&'static str> {
    if !variable.contains('_') || !super::sensitive_path::is_secret_name(variable) {
        return None;
    }
    own_hosts(variable)?.first().copied()
}

/// Whether a variable contains a secret of a known service and the URL belongs to another host.
pub(super) fn is_foreign_host(variable: &str, url: &str) -> bool {
    let Some(own) = own_hosts(variable) else { return false };
    let Some(host) = host::host_of_url(url).filter(|host| !host.contains(['{', '$', '<', '}']))
    else {
        return false;
    };
    let local = matches!(
        host::reputation(url),
        host::HostReputation::Local | host::HostReputation::Unknown
    );
    let known = own.iter().any(|known| {
        host == *known || host.strip_suffix(known).is_some_and(|before| before.ends_with('.'))
    });
    !local && !known && !is_self_hosted(&host, variable)
}

/// Whether a URL belongs to the service of the secret in a variable.
pub(super) fn is_own_host(variable: &str, url: &str) -> bool {
    let Some((own, host)) = own_hosts(variable).zip(host::host_of_url(url)) else { return false };
    own.iter().any(|known| {
        host == *known || host.strip_suffix(known).is_some_and(|before| before.ends_with('.'))
    })
}

/// Whether the first label is the service: `gitlab.company.com`, not `openai-cache.company.com`.
fn is_self_hosted(host: &str, variable: &str) -> bool {
    let label = host.split('.').next().unwrap_or(host);
    let named = |word: &str| word.eq_ignore_ascii_case(label);
    SELF_HOSTED_SERVICES.iter().any(|word| named(word)) && variable.split('_').any(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_belong_to_their_service() {
        for (variable, url) in [
            ("OPENAI_API_KEY", "https://prices.meter.example/v1"),
            ("GITHUB_TOKEN", "https://api.github.com.evil.example/"),
            ("AWS_SECRET_ACCESS_KEY", "http://198.51.100.4/sign"),
            ("MY_STRIPE_KEY", "https://charts.example.net"),
            ("OPENAI_API_KEY", "https://api.cheap-models.example/v1"),
            ("ANTHROPIC_API_KEY", "https://anthropic.saver.example/v1"),
        ] {
            assert!(is_foreign_host(variable, url), "{variable} {url}");
        }
        for (variable, url) in [
            ("OPENAI_API_KEY", "https://api.openai.com/v1"),
            ("GITHUB_TOKEN", "https://github.company.example/api"),
            ("WEATHER_KEY", "https://api.weather.example"),
            ("OPENAI_API_KEY", "http://localhost:8000"),
            ("OPENAI_API_KEY", "$URL/v1"),
        ] {
            assert!(!is_foreign_host(variable, url), "{variable} {url}");
        }
    }
}
