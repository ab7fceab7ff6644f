//! Rules about parameters, modes and timeouts of gibb.eri.sh.

use crate::check::rule::rule;

rule! {
    /// A parameter appears twice in the table of a tool.
    ///
    /// ## Why
    ///
    /// gibb.eri.sh uses the first row and ignores the type and the description of the second one.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    /// | file | string | no | The file or folder to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    DUPLICATE_PARAMETER = "duplicate-parameter", Warning
}

rule! {
    /// A tool section does not say which parameters it takes.
    ///
    /// ## Why
    ///
    /// gibb.eri.sh then passes no value to the command, and a placeholder in it is dropped. Write
    /// `None.` if the tool has no parameters.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    NO_PARAMETERS_SECTION = "no-parameters-section", Warning
}

rule! {
    /// The timeout is shorter than 1 second or longer than 300.
    ///
    /// ## Why
    ///
    /// gibb.eri.sh uses the nearest allowed value, so the value in the file has no effect.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// timeout: 900
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// timeout: 300
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    TIMEOUT_CLAMPED = "timeout-clamped", Warning, fix Unsafe
}

rule! {
    /// The table of a tool does not say whether a parameter is required.
    ///
    /// ## Why
    ///
    /// The third column must be `yes` or `no`. Anything else is read as `no`, so the command may
    /// run without a value that it needs.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | maybe | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    UNCLEAR_REQUIRED = "unclear-required", Warning
}

rule! {
    /// `modes` names a situation that gibb.eri.sh does not know.
    ///
    /// ## Why
    ///
    /// The value is ignored. The modes are `Global`, `Dev`, `Meeting` and `Writer`, with a capital
    /// letter. It is an error if no known mode is left.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// modes: [Writer, dev]
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// modes: [Writer, Dev]
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    UNKNOWN_MODE = "unknown-mode", Warning, fix Unsafe
}

rule! {
    /// A parameter has a type that gibb.eri.sh does not know.
    ///
    /// ## Why
    ///
    /// It is read as `string`, so the model may send anything. The types are `string`, `integer`,
    /// `number`, `boolean` and `array`; a map cannot be an argument of a program.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | path | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    UNKNOWN_PARAMETER_TYPE = "unknown-parameter-type", Warning
}
