//! JSON pointers, and the tree of names that looks for all of them at once.

/// A JSON pointer (RFC 6901) that names a member, not the whole document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Longest pointer in bytes.
    pub const BYTES_MAX: usize = 256;
    /// Most names in one pointer: well below the depth that a body may have.
    pub const NAMES_MAX: usize = 16;

    /// Reads `/a/b`, in which `~1` stands for `/` and `~0` for `~`; `None` where it is none, is the empty
    /// one, or is longer than 256 bytes or 16 names.
    pub fn parse(text: &str) -> Option<Self> {
        let names: Vec<String> = text.strip_prefix('/')?.split('/').map(unescape).collect::<Option<_>>()?;
        (text.len() <= Self::BYTES_MAX && names.len() <= Self::NAMES_MAX).then_some(Self(names))
    }

    /// Its names, from the outside in. Never empty.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Whether it leads to what `other` leads to, or into it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

/// RFC 6901, 4: a `~` that is not followed by 0 or 1 is an error.
fn unescape(name: &str) -> Option<String> {
    let mut parts = name.split('~');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        plain.push(if part.starts_with('0') { '~' } else { '/' });
        plain.push_str(part.strip_prefix(['0', '1'])?);
    }
    Some(plain)
}

/// Pointers to look for, all in one walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointers {
    pointers: Vec<Pointer>,
    /// A tree of names; the first is the outermost object.
    nodes: Vec<Node>,
    /// The nodes that each pointer passes, the outermost object first.
    trails: Vec<Vec<usize>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    children: Vec<Child>,
    /// The elements of an array here are to be counted.
    counted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Child {
    name: String,
    /// The name as the index of an array: digits without a leading zero.
    index: Option<usize>,
    node: usize,
}

impl Default for Pointers {
    fn default() -> Self {
        Self { pointers: Vec::new(), nodes: vec![Node::default()], trails: Vec::new() }
    }
}

impl Pointers {
    /// Adds a pointer, unless it is there. Its number.
    pub fn add(&mut self, pointer: Pointer) -> usize {
        if let Some(number) = self.pointers.iter().position(|other| *other == pointer) {
            return number;
        }
        let mut trail = vec![0];
        let mut node = 0;
        for name in &pointer.0 {
            node = self.child(node, name);
            trail.push(node);
        }
        self.pointers.push(pointer);
        self.trails.push(trail);
        self.pointers.len() - 1
    }

    /// The same, and the elements of an array that it leads to are to be counted.
    pub fn add_counted(&mut self, pointer: Pointer) -> usize {
        let number = self.add(pointer);
        if let Some(&last) = self.trails[number].last() {
            self.nodes[last].counted = true;
        }
        number
    }

    fn child(&mut self, node: usize, name: &str) -> usize {
        if let Some(child) = self.named(node, name.as_bytes()) {
            return child;
        }
        let index = name.parse().ok().filter(|index: &usize| index.to_string() == name);
        let new = self.nodes.len();
        self.nodes.push(Node::default());
        self.nodes[node].children.push(Child { name: name.to_owned(), index, node: new });
        new
    }

    /// The nodes that a pointer passes, the outermost object first, and its names.
    pub(super) fn trail(&self, number: usize) -> (&[usize], &[String]) {
        (&self.trails[number], &self.pointers[number].0)
    }

    /// Number of nodes. The first, 0, is the outermost object.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing is wanted of what is in the value of this node.
    pub(super) fn is_leaf(&self, node: usize) -> bool {
        self.nodes[node].children.is_empty() && !self.nodes[node].counted
    }

    /// The child of a node by the name of a member.
    pub(super) fn named(&self, node: usize, name: &[u8]) -> Option<usize> {
        self.nodes[node].children.iter().find(|child| child.name.as_bytes() == name).map(|child| child.node)
    }

    /// The child of a node by the index of an element.
    pub(super) fn indexed(&self, node: usize, index: usize) -> Option<usize> {
        self.nodes[node].children.iter().find(|child| child.index == Some(index)).map(|child| child.node)
    }

    /// The pointer that passes a node, cut off there.
    pub(super) fn spelt(&self, node: usize) -> String {
        let trail = self.trails.iter().position(|trail| trail.contains(&node));
        let names = trail.map_or(&[][..], |number| {
            let depth = self.trails[number].iter().position(|&passed| passed == node).unwrap_or(0);
            &self.pointers[number].0[..depth]
        });
        names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> Pointer {
        Pointer::parse(text).expect(text)
    }

    #[test]
    fn pointers_are_read_with_their_escapes() {
        for (text, want) in [
            ("/a", Some(vec!["a"])),
            ("/a/b~1c/~0d", Some(vec!["a", "b/c", "~d"])),
            ("/~01", Some(vec!["~1"])),
            ("/", Some(vec![""])),
            ("", None),
            ("a", None),
            ("/~", None),
            ("/~2", None),
            ("/a~", None),
        ] {
            let names = Pointer::parse(text);
            assert_eq!(
                names.as_ref().map(|names| names.names().to_vec()),
                want.map(|names| names.iter().map(ToString::to_string).collect()),
                "{text}"
            );
        }
        assert!(Pointer::parse(&"/a".repeat(17)).is_none());
        assert!(Pointer::parse(&format!("/{}", "a".repeat(256))).is_none());
        assert!(pointer("/a/b").is_within(&pointer("/a")) && !pointer("/ab").is_within(&pointer("/a")));
    }

    #[test]
    fn pointers_share_what_they_pass() {
        let mut pointers = Pointers::default();
        let numbers = ["/a/b", "/a/c", "/a/b", "/a/01"].map(|text| pointers.add(pointer(text)));
        assert_eq!((numbers, pointers.len()), ([0, 1, 0, 2], 5));
        let a = pointers.named(0, b"a").expect("a");
        assert_eq!(pointers.spelt(pointers.named(a, b"c").expect("c")), "/a/c");
        assert_eq!((pointers.spelt(a), pointers.indexed(a, 1)), ("/a".to_owned(), None));
    }
}
