//! The JSON schema of the configuration file, for editors.

use super::raw;

/// The schema (JSON Schema 2020-12) as pretty JSON, with a line end.
#[must_use]
pub fn schema_json() -> String {
    let schema = schemars::schema_for!(raw::File);
    format!("{:#}\n", schema.as_value())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_knows_every_part_and_forbids_others() {
        let schema: serde_json::Value = serde_json::from_str(&super::schema_json()).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        let parts: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(
            parts,
            [
                "clusters",
                "cors",
                "keys",
                "limits",
                "log",
                "routes",
                "server",
                "session",
                "sim",
                "stream",
                "telemetry",
                "timeouts"
            ]
        );
        assert!(schema["properties"]["stream"]["description"].as_str().unwrap().contains("streams"));
    }
}
