//! Rules about GAIA permissions.

use crate::check::rule::rule;

rule! {
    /// A domain is declined with `none` and granted in the same list.
    ///
    /// ## Why
    ///
    /// One entry says that the skill never touches the resource, the other requests it. It is
    /// unclear which one the user agrees to.
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
    /// permissions:
    ///   - network:none
    ///   - network:read:api.weather.example
    /// tools:
    ///   - name: forecast
    ///     description: Looks up the forecast of a place.
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
    /// permissions:
    ///   - network:read:api.weather.example
    /// tools:
    ///   - name: forecast
    ///     description: Looks up the forecast of a place.
    /// security_tier: experimental
    /// ---
    /// # Weather
    ///
    /// Call `forecast`.
    /// ````
    CONTRADICTING_PERMISSIONS = "contradicting-permissions", Error
}

rule! {
    /// A permission is not `domain:level` or `domain:level:scope`.
    ///
    /// ## Why
    ///
    /// A permission that cannot be parsed cannot be granted or denied. The domains are
    /// `filesystem`, `network`, `shell`, `desktop`, `mcp`, `env` and `database`; each has its own
    /// levels.
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
    /// permissions:
    ///   - files:read
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
    /// permissions:
    ///   - filesystem:read
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    INVALID_PERMISSION = "invalid-permission", Error
}

rule! {
    /// The scope of a permission is not valid in its domain.
    ///
    /// ## Why
    ///
    /// A scope narrows a permission: a folder, a host, a program, a variable. A scope that matches
    /// nothing makes the skill fail when it runs, and a scope with `..` hides which folder it
    /// refers to.
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
    /// permissions:
    ///   - filesystem:read:ledger/../..
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
    /// permissions:
    ///   - filesystem:read:ledger
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    PERMISSION_SCOPE = "permission-scope", Warning
}
