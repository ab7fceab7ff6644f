//! Rules about tools of a skill: Python functions of GAIA, commands of gibb.eri.sh.

use crate::check::rule::rule;

rule! {
    /// Two tools of a skill have the same name.
    ///
    /// ## Why
    ///
    /// A model calls a tool by its name, so only one of the two can be called.
    ///
    /// ## Bad
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// author: ana
    /// license: MIT
    /// permissions: ["network:read:api.weather.example"]
    /// tools:
    ///   - name: forecast
    ///     description: Looks up the forecast of today.
    ///   - name: forecast
    ///     description: Looks up the forecast of the week.
    /// security_tier: experimental
    /// ---
    /// # Weather
    ///
    /// Call `forecast`.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// author: ana
    /// license: MIT
    /// permissions: ["network:read:api.weather.example"]
    /// tools:
    ///   - name: forecast_today
    ///     description: Looks up the forecast of today.
    ///   - name: forecast_week
    ///     description: Looks up the forecast of the week.
    /// security_tier: experimental
    /// ---
    /// # Weather
    ///
    /// Call `forecast_today` or `forecast_week`.
    /// ````
    DUPLICATE_TOOL = "duplicate-tool", Error
}

rule! {
    /// The command of a tool is more than one program call.
    ///
    /// ## Why
    ///
    /// gibb.eri.sh starts one program without a shell, so pipes, redirections and several lines do
    /// not work, and values are never run as code. Put more complex commands into a script of the
    /// skill.
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
    ///
    /// #### Command
    ///
    /// ```bash
    /// cd src
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
    /// git -C src blame -- {{file}}
    /// ```
    /// ````
    INVALID_COMMAND = "invalid-command", Error
}

rule! {
    /// The name of a tool has characters that its system does not allow.
    ///
    /// ## Why
    ///
    /// GAIA looks up a Python function of that name. gibb.eri.sh passes the name to the model, and
    /// allows lower-case letters, digits and underscores, 32 at most.
    ///
    /// ## Bad
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read"]
    /// tools:
    ///   - name: list-invoices
    ///     description: Lists open invoices.
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list-invoices`.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    INVALID_TOOL_NAME = "invalid-tool-name", Error
}

rule! {
    /// A GAIA skill declares tools, but `tools.py` is not in its folder.
    ///
    /// ## Why
    ///
    /// The declared functions have no code, so no tool can be called.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    MISSING_TOOLS_FILE = "missing-tools-file", Error
}

rule! {
    /// A tool section has no command.
    ///
    /// ## Why
    ///
    /// For gibb.eri.sh every `###` heading of one word is a tool, and a tool is a `bash` code
    /// block. Use more than one word for a heading that is not a tool.
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
    /// ### status
    ///
    /// Shows what has changed since the last commit.
    ///
    /// #### Parameters
    ///
    /// None.
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
    /// ### status
    ///
    /// Shows what has changed since the last commit.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// git status --short
    /// ```
    /// ````
    NO_COMMAND = "no-command", Error
}

rule! {
    /// The skill has no tool, but its dialect requires one.
    ///
    /// ## Why
    ///
    /// A gibb.eri.sh skill is a set of commands, and a GAIA skill with the flat layout is a set of
    /// Python functions. Use the base format for a skill that has only instructions.
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
    /// Run `git blame` on the file.
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
    /// ### status
    ///
    /// Shows what has changed since the last commit.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// git status --short
    /// ```
    /// ````
    NO_TOOLS = "no-tools", Error
}
