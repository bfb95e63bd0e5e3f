//! `${NAME}` in values: an environment variable's value in place of its name.
//!
//! It happens in the parsed tree, inside scalars that are texts. So a value is a value whatever it
//! holds: it can neither add a setting nor end a quote, and it is not looked through for names again.
//! `$${` stands for the two characters `${`.

use std::env::VarError;

use super::place::shown;
use super::tree::{Given, Node, Scalar, Value};

/// Most bytes of all values of variables together.
const VALUES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Looks a variable up.
type Variable = fn(&str) -> Result<String, VarError>;

/// What is wrong, and the fix.
type Wrong = (String, &'static str);

/// Puts values in place of names, everywhere in the tree. What has no value is told when the tree is
/// checked.
pub(super) fn expand(root: &mut Node, variable: Variable) {
    let mut left = VALUES_BYTES_MAX;
    below(root, &mut |text| given(text, variable, &mut left));
}

fn below(node: &mut Node, given: &mut impl FnMut(&str) -> Option<Given>) {
    match &mut node.value {
        Value::Scalar(scalar) => {
            if let Scalar::Text(text) = scalar
                && let Some(given) = given(text)
            {
                *scalar = Scalar::Given(given);
            }
        }
        Value::List(list) => list.iter_mut().for_each(|node| below(node, given)),
        Value::Map(map) => map.entries.iter_mut().for_each(|entry| below(&mut entry.value, given)),
    }
}

/// `None` for a text that is meant as it is written. `left` is how many bytes all values together may
/// still have.
fn given(written: &str, variable: Variable, left: &mut usize) -> Option<Given> {
    written
        .contains("${")
        .then(|| Given { written: written.into(), text: filled_in(written, variable, left) })
}

fn filled_in(written: &str, variable: Variable, left: &mut usize) -> Result<String, Wrong> {
    let mut text = String::new();
    let mut rest = written;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("$${") {
            text.push_str("${");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("${") {
            let (name, after) =
                after.split_once('}').filter(|(name, _)| is_name(name)).ok_or_else(no_name)?;
            let value = variable(name).map_err(|error| no_value(name, &error))?;
            *left = left.checked_sub(value.len()).ok_or_else(|| too_much(name))?;
            text.push_str(&value);
            rest = after;
        } else {
            text.push('$');
            rest = &rest[1..];
        }
    }
    text.push_str(rest);
    Ok(text)
}

/// Whether a variable can have this name: POSIX.1-2017, 8.1, and lower case.
pub(super) fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn no_name() -> Wrong {
    (
        "\"${\" begins no name of an environment variable".into(),
        "write ${NAME}, or $${ for the two characters",
    )
}

fn no_value(name: &str, error: &VarError) -> Wrong {
    let what = match error {
        VarError::NotPresent => format!("the environment variable {} is not set", shown(name)),
        VarError::NotUnicode(_) => format!("the environment variable {} is not UTF-8", shown(name)),
    };
    (what, "set it, or write the value; $${ stands for the two characters \"${\"")
}

fn too_much(name: &str) -> Wrong {
    (format!("with the environment variable {} there are more than 4 MiB of values", shown(name)), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Result<String, VarError> {
        match name {
            "A" => Ok("a-value".into()),
            "_b2" => Ok(String::new()),
            "NAME_OF_A" => Ok("${A} $${A}".into()),
            "YAML" => Ok("x\"]\n- y: {".into()),
            "LATIN1" => Err(VarError::NotUnicode("caf".into())),
            "HUGE" => Ok("h".repeat(3 << 20)),
            _ => Err(VarError::NotPresent),
        }
    }

    fn filled(written: &str) -> Result<String, String> {
        filled_in(written, variable, &mut VALUES_BYTES_MAX.clone()).map_err(|(what, _)| what)
    }

    #[test]
    fn values_stand_where_names_stood() {
        assert_eq!(filled("${A}").unwrap(), "a-value");
        assert_eq!(filled("http://${A}:80/${_b2}$").unwrap(), "http://a-value:80/$");
        assert_eq!(filled("$${A} $$${A} $A").unwrap(), "${A} $${A} $A");
    }

    #[test]
    fn a_value_is_never_looked_through_again() {
        assert_eq!(filled("${NAME_OF_A}").unwrap(), "${A} $${A}");
    }

    #[test]
    fn what_names_no_value_is_told() {
        assert!(filled("x ${ABSENT}").unwrap_err().contains("\"ABSENT\" is not set"));
        assert!(filled("${LATIN1}").unwrap_err().contains("not UTF-8"));
        assert!(filled("${HUGE}${HUGE}").unwrap_err().contains("more than 4 MiB"));
        for written in ["${", "${}", "${A", "${1A}", "${A-x}", "${ A }", "${é}"] {
            assert!(filled(written).unwrap_err().contains("begins no name"), "{written}");
        }
    }

    #[test]
    fn a_value_makes_no_structure() {
        let mut tree = super::super::tree::parse("a: ${YAML}\nb: [\"${YAML}\", '${A}']\n").unwrap();
        expand(&mut tree, variable);
        let text = |node: &Node| node.given().unwrap().text.clone().unwrap();
        assert_eq!(text(&tree.entry("a").unwrap().value), "x\"]\n- y: {");
        let Value::List(list) = &tree.entry("b").unwrap().value.value else { panic!("a list") };
        assert_eq!(list.iter().map(text).collect::<Vec<_>>(), ["x\"]\n- y: {", "a-value"]);
    }
}
