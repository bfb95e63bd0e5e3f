//! The JSON schema of the configuration file, for editors.

use serde_json::Value;

use super::raw;

/// The schema (JSON Schema 2020-12) as pretty JSON, with a line end.
#[must_use]
pub fn schema_json() -> String {
    let mut schema = schemars::schema_for!(raw::File).to_value();
    admit_variables(&mut schema);
    format!("{schema:#}\n")
}

/// What a text with a variable of the environment in it looks like.
const VARIABLE: &str = r"\$\{";

/// Lets `${NAME}` stand wherever a value is no free text: it is read as what the setting is.
fn admit_variables(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(pattern)) = map.get_mut("pattern") {
                *pattern = format!("{pattern}|{VARIABLE}");
            } else if let Some(types) = map.get_mut("type").and_then(with_text) {
                map.insert("type".into(), types);
                map.insert("pattern".into(), VARIABLE.into());
            }
            map.values_mut().for_each(admit_variables);
        }
        Value::Array(list) => list.iter_mut().for_each(admit_variables),
        _ => {}
    }
}

/// The types with "string" among them, if they are those of a number or a truth value.
fn with_text(types: &mut Value) -> Option<Value> {
    let mut types = match types {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let is_plain = |name: &Value| ["boolean", "integer", "number"].iter().any(|plain| name == plain);
    types.iter().any(is_plain).then(|| {
        types.push("string".into());
        Value::Array(types)
    })
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

    /// Every object of the schema.
    fn objects<'s>(
        schema: &'s serde_json::Value,
        all: &mut Vec<&'s serde_json::Map<String, serde_json::Value>>,
    ) {
        if let Some(map) = schema.as_object() {
            all.push(map);
            map.values().for_each(|value| objects(value, all));
        }
        schema.as_array().into_iter().flatten().for_each(|value| objects(value, all));
    }

    #[test]
    fn a_variable_may_stand_for_any_number_quantity_or_truth_value() {
        let schema: serde_json::Value = serde_json::from_str(&super::schema_json()).unwrap();
        let mut all = Vec::new();
        objects(&schema, &mut all);
        let mut seen = 0;
        for map in all {
            let types: Vec<&str> = match &map.get("type") {
                Some(serde_json::Value::String(one)) => vec![one],
                Some(serde_json::Value::Array(list)) => list.iter().filter_map(|one| one.as_str()).collect(),
                _ => continue,
            };
            let pattern = map.get("pattern").and_then(|pattern| pattern.as_str());
            if types.iter().any(|kind| ["boolean", "integer", "number"].contains(kind)) || pattern.is_some() {
                seen += 1;
                assert!(types.contains(&"string"), "{map:?}");
                assert!(pattern.is_some_and(|pattern| pattern.ends_with(super::VARIABLE)), "{map:?}");
            }
        }
        assert!(seen > 30, "only {seen} settings were looked at");
    }

    #[test]
    fn descriptions_speak_of_settings_and_not_of_types() {
        let text = super::schema_json();
        for word in ["`Debug`", "`Option", "`None`", "serde", "[`"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}
