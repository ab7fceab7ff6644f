//! The list of rules, sorted by code.

use super::Rule;

mod allowed_tools;
mod body_shape;
mod body_size;
mod bundled_files;
mod command_templates;
mod comment_in_value;
mod conflict_markers;
mod descriptions;
mod fences;
mod fields;
mod files;
mod folder_name;
mod gibberish;
mod hidden_characters;
mod hidden_comments;
mod hosts;
mod input_defaults;
mod input_in_code_block;
mod installed_programs;
mod line_endings;
mod links;
mod names;
mod nested_archives;
mod network_programs;
mod observed;
mod permission_reach;
mod permissions;
mod placeholder_text;
mod placeholders;
mod portable_yaml;
mod program_text;
mod script_interpreter;
mod secrets;
mod smart_quotes;
mod targets;
mod template_leftovers;
mod tools;
#[cfg(feature = "python")]
mod tools_source;
mod unknown_dialect;
mod versions;
mod yaml_features;
mod yaml_layout;
mod yaml_quotes;

#[cfg(test)]
mod testing;

pub(super) use hidden_characters::hidden_characters;
pub(super) use names::unsafe_name;
pub use placeholders::undeclared_placeholders;

/// Every rule, sorted by code; a test checks the order.
pub(super) static ALL: &[&Rule] = &[
    &links::ABSOLUTE_LINK,
    &allowed_tools::ALLOWED_TOOLS_COMMAS,
    &allowed_tools::ALLOWED_TOOLS_LIST,
    &hosts::ARGUMENT_HINT_LIST,
    &hidden_characters::BIDI_CONTROL,
    &fences::BLANK_BEFORE_FRONTMATTER,
    &yaml_layout::BLOCK_SCALAR_TEXT,
    &hosts::BOTH_SHAPES,
    &permission_reach::BROAD_PERMISSION,
    &links::BROKEN_LINK,
    &line_endings::BYTE_ORDER_MARK,
    &fences::CODE_FENCED,
    &comment_in_value::COMMENT_IN_VALUE,
    &conflict_markers::CONFLICT_MARKERS,
    &permissions::CONTRADICTING_PERMISSIONS,
    &hidden_characters::CONTROL_CHARACTER,
    &line_endings::CRLF_LINE_ENDINGS,
    &command_templates::DANGLING_FLAG,
    &descriptions::DESCRIPTION_LONG,
    &descriptions::DESCRIPTION_TRUNCATED,
    &names::DOUBLE_HYPHEN,
    &input_defaults::DUPLICATE_INPUT,
    &yaml_features::DUPLICATE_KEY,
    &gibberish::DUPLICATE_PARAMETER,
    &tools::DUPLICATE_TOOL,
    &names::EDGE_HYPHEN,
    &body_size::EMPTY_BODY,
    &files::EMPTY_FILE,
    &fences::FENCE_TRAILING_BLANK,
    &files::FILE_TOO_LARGE,
    &portable_yaml::FLOW_METADATA,
    &fences::FRONTMATTER_NOT_MAP,
    &fences::FRONTMATTER_TOO_LARGE,
    &hidden_comments::HIDDEN_COMMENT,
    &yaml_layout::HTML_SPACE,
    &body_shape::INCLUDE_STUB,
    &input_defaults::INPUT_DEFAULT_TYPE,
    &input_in_code_block::INPUT_IN_CODE_BLOCK,
    &tools::INVALID_COMMAND,
    &yaml_quotes::INVALID_ESCAPE,
    &fields::INVALID_LICENSE,
    &names::INVALID_NAME,
    &permissions::INVALID_PERMISSION,
    &versions::INVALID_RANGE,
    &fields::INVALID_SCHEMA,
    &tools::INVALID_TOOL_NAME,
    &fields::INVALID_VALUE,
    &versions::INVALID_VERSION,
    &yaml_layout::INVALID_YAML,
    &hidden_characters::INVISIBLE_UNICODE,
    &links::LINK_OUTSIDE,
    &yaml_layout::LIST_ON_KEY_LINE,
    &body_size::LONG_BODY,
    &yaml_layout::MISALIGNED_LIST,
    &yaml_layout::MISSING_BLANK,
    &fences::MISSING_FENCE,
    &fields::MISSING_FIELD,
    &fences::MISSING_FRONTMATTER,
    &command_templates::MISSING_SCRIPT,
    &tools::MISSING_TOOLS_FILE,
    &versions::MISSING_VERSION,
    &line_endings::MIXED_LINE_ENDINGS,
    &folder_name::NAME_FOLDER_MISMATCH,
    &names::NAME_NOT_KEBAB_CASE,
    &nested_archives::NESTED_ARCHIVE,
    &fields::NESTED_METADATA,
    &network_programs::NETWORK_NOT_DECLARED,
    &tools::NO_COMMAND,
    &gibberish::NO_PARAMETERS_SECTION,
    &tools::NO_TOOLS,
    &command_templates::NOT_A_PLACEHOLDER,
    &placeholder_text::NOT_A_SKILL,
    &files::NOT_UTF8,
    &hidden_characters::NUL_BYTE,
    &permissions::PERMISSION_SCOPE,
    &observed::PERMISSION_UNDECLARED,
    &observed::PERMISSION_UNUSED,
    &placeholder_text::PLACEHOLDER_BODY,
    &program_text::PLACEHOLDER_IN_PROGRAM,
    &secrets::POSSIBLE_SECRET,
    &installed_programs::PROGRAM_NOT_INSTALLED,
    &yaml_quotes::QUOTED_INDENTATION,
    &input_defaults::REQUIRED_WITH_DEFAULT,
    &fields::RESERVED_FIELD,
    &names::RESERVED_PREFIX,
    &versions::RUNTIME_TOO_NEW,
    &script_interpreter::SCRIPT_WITHOUT_INTERPRETER,
    &body_shape::SECOND_FRONTMATTER,
    &command_templates::SHELL_OPERATOR,
    &hosts::SIDE_FILE,
    &folder_name::SKILL_FILE_NAME,
    &smart_quotes::SMART_QUOTES,
    &yaml_layout::TAB_INDENTATION,
    &targets::TARGET_IGNORES,
    &targets::TARGET_REJECTS,
    &targets::TARGET_TRUNCATES,
    &yaml_quotes::TEXT_AFTER_QUOTE,
    &permission_reach::TIER_PERMISSION,
    &gibberish::TIMEOUT_CLAMPED,
    &fields::TOO_LONG,
    #[cfg(feature = "python")]
    &tools_source::TOOL_NOT_DECLARED,
    #[cfg(feature = "python")]
    &tools_source::TOOL_NOT_DECORATED,
    #[cfg(feature = "python")]
    &tools_source::TOOL_NOT_IN_SOURCE,
    #[cfg(feature = "python")]
    &tools_source::TOOL_RETURNS_NO_JSON,
    #[cfg(feature = "python")]
    &tools_source::TOOL_SIGNATURE_DIFFERS,
    #[cfg(feature = "python")]
    &tools_source::TOOL_WITHOUT_DOCSTRING,
    #[cfg(feature = "python")]
    &tools_source::TOOLS_PY_UNREADABLE,
    &gibberish::UNCLEAR_REQUIRED,
    &yaml_layout::UNCLOSED_BRACKET,
    &body_shape::UNCLOSED_CODE_FENCE,
    &fences::UNCLOSED_FRONTMATTER,
    &allowed_tools::UNCLOSED_PARENTHESIS,
    &yaml_quotes::UNCLOSED_QUOTE,
    &command_templates::UNDECLARED_PARAMETER,
    &placeholders::UNDECLARED_PLACEHOLDER,
    &permission_reach::UNENFORCEABLE_PERMISSION,
    &allowed_tools::UNKNOWN_ALLOWED_TOOLS,
    &unknown_dialect::UNKNOWN_DIALECT,
    &fields::UNKNOWN_FIELD,
    &fields::UNKNOWN_INPUT_TYPE,
    &gibberish::UNKNOWN_MODE,
    &hosts::UNKNOWN_OS,
    &gibberish::UNKNOWN_PARAMETER_TYPE,
    &versions::UNKNOWN_RUNTIME,
    &bundled_files::UNMENTIONED_FILE,
    &yaml_quotes::UNQUOTED_COLON,
    &yaml_quotes::UNQUOTED_SPECIAL,
    &files::UNREADABLE_FILE,
    &template_leftovers::UNRENDERED_TEMPLATE,
    &names::UNSAFE_NAME,
    &placeholders::UNUSED_INPUT,
    &command_templates::UNUSED_PARAMETER,
    &files::UNWRITABLE_FILE,
    &placeholder_text::VAGUE_DESCRIPTION,
    &fields::WRONG_TYPE,
    &yaml_features::YAML_ALIAS,
    &yaml_features::YAML_KEY,
    &yaml_features::YAML_MERGE_KEY,
    &yaml_features::YAML_TAG,
    &yaml_features::YAML_TOO_DEEP,
    &yaml_features::YAML_TOO_LARGE,
    &portable_yaml::YAML_VERSION_DIFFERENCE,
];
