//! What a walk found in a body: where pointers lead, which names stand in it, how deep its schemas are.

use std::ops::Range;

use super::elements::Elements;
use super::pointers::Pointers;

/// What a pointer leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'p> {
    /// A value, at these bytes of the body; not `null`.
    Value(Range<usize>),
    /// Nothing, or `null`, which says as much. `within` is the innermost value on the way, and `names`
    /// are those that it lacks, none where it is itself the `null`.
    Nothing {
        /// Bytes of an object or a `null`.
        within: Range<usize>,
        /// What would have to be added.
        names: &'p [String],
    },
    /// Nothing, and there is no object that could have it: a scalar or an array is in the way.
    Blocked,
}

/// What a walk found in one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// What stands at each node of the pointers.
    nodes: Vec<Option<Place>>,
    /// Numbers of the wanted names that stand in it, each once.
    names: Vec<usize>,
    /// Levels of the deepest schema.
    schema_depth: usize,
}

/// A value in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) span: Range<usize>,
    /// Elements of an array, where they were counted.
    pub(super) elements: Option<Elements>,
}

impl Places {
    /// Of a body that has not been walked yet.
    pub(super) fn nowhere(nodes: usize) -> Self {
        Self { nodes: vec![None; nodes], names: Vec::new(), schema_depth: 0 }
    }

    /// Something stands at a node. Whether something did before.
    pub(super) fn found(&mut self, node: usize, place: Place) -> bool {
        self.nodes[node].replace(place).is_some()
    }

    /// A wanted name stands in the body.
    pub(super) fn named(&mut self, number: usize) {
        if !self.names.contains(&number) {
            self.names.push(number);
        }
    }

    /// A schema goes so deep.
    pub(super) fn schema(&mut self, depth: usize) {
        self.schema_depth = self.schema_depth.max(depth);
    }

    /// Where pointer `number` leads. `body` and `pointers` are those of the walk; of its pointers, the first
    /// ones will do.
    pub fn find<'p>(&self, body: &[u8], pointers: &'p Pointers, number: usize) -> Found<'p> {
        let (trail, names) = pointers.trail(number);
        let known = trail.iter().take_while(|&&node| self.nodes[node].is_some()).count();
        let innermost = known.checked_sub(1).and_then(|last| self.nodes[trail[last]].as_ref());
        let Some(Place { span, .. }) = innermost else { return Found::Blocked };
        let (innermost, names) = (span.clone(), &names[known - 1..]);
        match &body[innermost.clone()] {
            b"null" => Found::Nothing { within: innermost, names },
            _ if names.is_empty() => Found::Value(innermost),
            [b'{', ..] => Found::Nothing { within: innermost, names },
            _ => Found::Blocked,
        }
    }

    /// The elements of the array that pointer `number` leads to; `None` where it leads to none, or they were not
    /// to be counted.
    pub fn elements(&self, pointers: &Pointers, number: usize) -> Option<Elements> {
        let (trail, _) = pointers.trail(number);
        self.nodes[*trail.last()?].as_ref()?.elements
    }

    /// Whether a wanted name stands anywhere in the body, with a value that is not `null`.
    pub fn has_name(&self, number: usize) -> bool {
        self.names.contains(&number)
    }

    /// Levels of objects and lists of the deepest schema, itself being the first; 0 without one.
    pub fn schema_depth(&self) -> usize {
        self.schema_depth
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pointer;
    use super::super::walk::{Lost, MEMBERS_MAX, walk};
    use super::super::wanted::Wanted;
    use super::*;

    fn pointer(text: &str) -> Pointer {
        Pointer::parse(text).expect(text)
    }

    fn walked(json: &str, texts: &[&str]) -> Result<Vec<String>, Lost> {
        let mut pointers = Pointers::default();
        let numbers: Vec<usize> = texts.iter().map(|text| pointers.add(pointer(text))).collect();
        let wanted = Wanted::from(pointers.clone());
        let (places, _) = walk(json.as_bytes(), 0, 64, &wanted)?;
        let told = |number| match places.find(json.as_bytes(), &pointers, number) {
            Found::Value(span) => json[span].to_owned(),
            Found::Nothing { within, names } => format!("{} lacks {}", &json[within], names.join(".")),
            Found::Blocked => "blocked".to_owned(),
        };
        Ok(numbers.into_iter().map(told).collect())
    }

    #[test]
    fn values_are_found_wherever_they_stand() {
        let json = "{ \"x\" : [1, {\"a\":2}],\n\"a\":{\"b\\u002fc\" : \"y\\\"\" , \"a\": [\"p\", {\"q\":-1.5e3}, []]} ,\"z\":true}";
        let found = walked(json, &["/a/b~1c", "/a/a/1/q", "/a/a/0", "/a/a/2", "/z", "/a/a"]).expect("valid");
        assert_eq!(found, [r#""y\"""#, "-1.5e3", r#""p""#, "[]", "true", r#"["p", {"q":-1.5e3}, []]"#]);
    }

    #[test]
    fn what_is_missing_is_told_with_its_parent() {
        let json = r#"{"a":{"b":{}},"n":null,"s":"x","l":[{"k":1}],"":2}"#;
        let texts =
            ["/q/r", "/a/c/d", "/a/b/c", "/n", "/n/m", "/s/t", "/l/1", "/l/0/m", "/l/00/k", "/l/-", "/"];
        let found = walked(json, &texts).expect("valid");
        let want = [
            &format!("{json} lacks q.r"),
            "{\"b\":{}} lacks c.d",
            "{} lacks c",
            "null lacks ",
            "null lacks m",
            "blocked",
            "blocked",
            "{\"k\":1} lacks m",
            "blocked",
            "blocked",
            "2",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn a_name_on_the_way_stands_once() {
        let twice = |json, text| walked(json, &[text]).expect_err(json);
        assert_eq!(twice(r#"{"a":1,"\u0061":2}"#, "/a"), Lost::Twice("/a".into()));
        assert_eq!(twice(r#"{"a":{},"a":{"b":1}}"#, "/a/b"), Lost::Twice("/a".into()));
        assert_eq!(twice(r#"{"a":{"/":1,"/":1}}"#, "/a/~1"), Lost::Twice("/a/~1".into()));
        assert!(walked(r#"{"x":1,"x":2,"a":{"x":1}}"#, &["/a"]).is_ok());
    }

    #[test]
    fn depth_is_counted_on_and_off_the_trail() {
        let mut pointers = Pointers::default();
        pointers.add(pointer("/a/0/0"));
        let wanted = Wanted::from(pointers);
        for (json, deep) in
            [("{\"a\":[[]]}", 3), ("{\"b\":[[]]}", 3), ("{\"a\":[[[]]]}", 4), ("{\"a\":\"[[[[\"}", 1)]
        {
            assert_eq!(walk(json.as_bytes(), 0, deep, &wanted).map(|(_, end)| end), Ok(json.len()), "{json}");
            assert_eq!(walk(json.as_bytes(), 0, deep - 1, &wanted), Err(Lost::TooDeep), "{json}");
        }
    }
    #[test]
    fn numbers_and_members_are_bounded_on_and_off_the_trail() {
        let long = "1".repeat(65);
        for json in [
            format!("{{\"a\":{long}}}"),
            format!("{{\"x\":[0,{long}]}}"),
            format!("{{\"a\":{{\"q\":-{long}}}}}"),
        ] {
            assert_eq!(walked(&json, &["/a/b"]), Err(Lost::LongNumber), "{json}");
            assert!(walked(&json.replace(&long, &long[..60]), &["/a/b"]).is_ok(), "{json}");
        }
        let members = |count: usize| format!("{{\"a\":{{{}}}}}", vec!["\"k\":0"; count].join(","));
        assert!(walked(&members(MEMBERS_MAX - 1), &["/z"]).is_ok());
        assert_eq!(walked(&members(MEMBERS_MAX), &["/z"]), Err(Lost::TooMany));
    }

    /// What a walk finds of names and schemas.
    fn surveyed(json: &str, names: &[&str]) -> (Vec<bool>, usize) {
        let mut wanted = Wanted { schemas: true, ..Wanted::default() };
        let numbers: Vec<usize> = names.iter().map(|name| wanted.names.add(name)).collect();
        let (places, _) = walk(json.as_bytes(), 0, 64, &wanted).expect(json);
        (numbers.into_iter().map(|number| places.has_name(number)).collect(), places.schema_depth())
    }

    #[test]
    fn names_are_found_at_any_depth_and_only_as_names() {
        for (json, found) in [
            (r#"{"url":1}"#, true),
            (r#"{"a":[{"b":{"url" : ""}}]}"#, true),
            (r#"{"a":[{"\u0075rl":false}]}"#, true),
            (r#"{"\ud800":1,"url":{}}"#, true),
            (r#"{"url":null}"#, false),
            (r#"{"a":"url","b":["url","url"]}"#, false),
            (r#"{"a":"\"url\":1"}"#, false),
            (r#"{"urls":1,"ur":2,"URL":3}"#, false),
        ] {
            assert_eq!(surveyed(json, &["url", "other"]).0, [found, false], "{json}");
        }
    }

    #[test]
    fn the_deepest_schema_is_measured_from_its_own_outermost_object() {
        for (json, depth) in [
            (r#"{"messages":[[[[]]]]}"#, 0),
            (r#"{"guided_json":{"a":{"b":[]}},"x":[[[[]]]]}"#, 3),
            (r#"{"response_format":{"json_schema":{"schema":{"a":{}}}}}"#, 3),
            (
                r#"{"tools":[{"function":{"parameters":{}}},{"function":{"parameters":{"a":{"parameters":{}}}}}]}"#,
                3,
            ),
            (r#"{"guided_json":"{\"a\":{\"}}}}\":[1]}}"}"#, 3),
            (r#"{"guided_json":"{\"a\":[","parameters":7}"#, 2),
            (r#"{"schema":{},"z":{"y":{"x":{}}}}"#, 1),
        ] {
            assert_eq!(surveyed(json, &[]).1, depth, "{json}");
        }
    }

    #[test]
    fn elements_are_counted_where_they_are_wanted() {
        let mut pointers = Pointers::default();
        let (tools, more) = (pointers.add_counted(pointer("/tools")), pointers.add(pointer("/more")));
        for (json, elements) in [
            (r#"{"tools":[],"more":[1]}"#, Some(0)),
            (r#"{"tools":[ {"a":[1,2]} , "x,y", [3,4] ],"more":[1]}"#, Some(3)),
            (r#"{"tools":{"a":1}}"#, None),
            ("{}", None),
        ] {
            let wanted = Wanted::from(pointers.clone());
            let (places, _) = walk(json.as_bytes(), 0, 64, &wanted).expect(json);
            assert_eq!(places.elements(&pointers, tools).map(|all| all.count), elements, "{json}");
            assert_eq!(places.elements(&pointers, more), None, "{json}");
        }
    }
}
