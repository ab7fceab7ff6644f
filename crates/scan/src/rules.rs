//! The list of rules, sorted by id.

use super::Rule;

mod agent_files;
mod covert_actions;
mod credential_lists;
mod declared_permissions;
mod dependencies;
mod exfiltration;
mod files;
mod forms;
mod imitated_host;
mod instructions;
mod manual_payload;
mod obfuscation;
mod payloads;
mod payment_redirect;
mod persistence;
mod pictures;
mod privacy_claims;
mod sabotage;
mod secret_requests;
mod secrets;
mod section_flows;
mod unicode;

pub(super) use files::{BINARY_PROGRAM, LOCKED_ARCHIVE, UNREAD_FILE};

/// Every rule, sorted by id; a test checks the order.
pub(super) static ALL: &[&Rule] = &[
    &agent_files::AGENT_POISONING,
    &unicode::BIDI_OVERRIDE,
    &files::BINARY_PROGRAM,
    &payloads::COIN_MINING,
    &instructions::CONCEALMENT,
    &exfiltration::CREDENTIAL_ACCESS,
    &payloads::DECODE_AND_EXECUTE,
    &payloads::DESTRUCTIVE_COMMAND,
    &sabotage::DESTRUCTIVE_INSTRUCTIONS,
    &files::DISGUISED_FILE,
    &payloads::DOWNLOAD_AND_EXECUTE,
    &obfuscation::DYNAMIC_CODE,
    &secrets::EMBEDDED_SECRET,
    &exfiltration::EXFILTRATION,
    &dependencies::FOREIGN_INDEX,
    &instructions::HIDDEN_INSTRUCTIONS,
    &unicode::HIDDEN_TEXT,
    &imitated_host::IMITATED_HOST,
    &dependencies::INSTALL_SCRIPT,
    &instructions::INSTRUCTION_OVERRIDE,
    &files::LOCKED_ARCHIVE,
    &manual_payload::MANUAL_PAYLOAD,
    &obfuscation::OBFUSCATION,
    &payment_redirect::PAYMENT_REDIRECT,
    &persistence::PERSISTENCE,
    &persistence::PROTECTION_DISABLED,
    &exfiltration::RAW_ADDRESS,
    &instructions::REMOTE_INSTRUCTIONS,
    &payloads::REVERSE_SHELL,
    &secret_requests::SECRET_SOLICITATION,
    &dependencies::TYPOSQUAT,
    &declared_permissions::UNDECLARED_FILES,
    &declared_permissions::UNDECLARED_NETWORK,
    &declared_permissions::UNDECLARED_PROGRAM,
    &dependencies::UNPINNED_DEPENDENCY,
    &files::UNREAD_FILE,
    &declared_permissions::UNUSED_PERMISSION,
];
