//! The tags that keep or count something, with a bound on what they keep: `assign`, `capture`, `ifchanged`, and
//! the mark by which a rendering knows its line. All else is Liquid's.

use std::io::{self, Write};
use std::sync::Arc;

use liquid_core::error::ResultLiquidReplaceExt;
use liquid_core::model::KString;
use liquid_core::parser::FilterChain;
use liquid_core::{BlockReflection, ParseBlock, ParseTag, TagBlock, TagReflection, TagTokenIter};
use liquid_core::{Error, Language, Renderable, Result, Runtime, Template, Value};

use super::meter::{LARGEST_VALUE, Meter, cost};

/// The mark's name. No template can write it: it is no tag that is known there.
pub(super) const MARK: &str = "outlast_at";

/// `{% outlast_at 17 %}`: what follows stands in line 17 of the template.
#[derive(Clone)]
pub(super) struct MarkTag(pub(super) Arc<Meter>);

impl TagReflection for MarkTag {
    fn tag(&self) -> &'static str {
        MARK
    }

    fn description(&self) -> &'static str {
        ""
    }
}

impl ParseTag for MarkTag {
    fn parse(&self, mut given: TagTokenIter<'_>, _: &Language) -> Result<Box<dyn Renderable>> {
        let line = given.expect_next("a line expected")?.as_str().parse();
        let line = line.map_err(|_| Error::with_msg("a line expected"))?;
        given.expect_nothing()?;
        Ok(Box::new(Mark { line, meter: Arc::clone(&self.0) }))
    }

    fn reflection(&self) -> &dyn TagReflection {
        self
    }
}

#[derive(Debug)]
struct Mark {
    line: usize,
    meter: Arc<Meter>,
}

impl Renderable for Mark {
    fn render_to(&self, _: &mut dyn Write, _: &dyn Runtime) -> Result<()> {
        self.meter.step(self.line)
    }
}

/// `{% assign name = value | filter %}`
#[derive(Clone)]
pub(super) struct AssignTag(pub(super) Arc<Meter>);

impl TagReflection for AssignTag {
    fn tag(&self) -> &'static str {
        "assign"
    }

    fn description(&self) -> &'static str {
        ""
    }
}

impl ParseTag for AssignTag {
    fn parse(
        &self,
        mut given: TagTokenIter<'_>,
        options: &Language,
    ) -> Result<Box<dyn Renderable>> {
        let name = given.expect_next("Identifier expected.")?.expect_identifier().into_result()?;
        let is = given.expect_next("Assignment operator \"=\" expected.")?;
        is.expect_str("=").into_result_custom_msg("Assignment operator \"=\" expected.")?;
        let value = given.expect_next("FilterChain expected.")?;
        let value = value.expect_filter_chain(options).into_result()?;
        given.expect_nothing()?;
        Ok(Box::new(Assign { name: KString::from_ref(name), value, meter: Arc::clone(&self.0) }))
    }

    fn reflection(&self) -> &dyn TagReflection {
        self
    }
}

#[derive(Debug)]
struct Assign {
    name: KString,
    value: FilterChain,
    meter: Arc<Meter>,
}

impl Renderable for Assign {
    fn render_to(&self, _: &mut dyn Write, runtime: &dyn Runtime) -> Result<()> {
        let value = self.value.evaluate(runtime)?;
        self.meter.keep("assign", cost(value.as_view()))?;
        let value = value.into_owned();
        runtime.set_global(self.name.clone(), value);
        Ok(())
    }
}

/// `{% capture name %}…{% endcapture %}`
#[derive(Clone)]
pub(super) struct CaptureBlock(pub(super) Arc<Meter>);

impl BlockReflection for CaptureBlock {
    fn start_tag(&self) -> &'static str {
        "capture"
    }

    fn end_tag(&self) -> &'static str {
        "endcapture"
    }

    fn description(&self) -> &'static str {
        ""
    }
}

impl ParseBlock for CaptureBlock {
    fn parse(
        &self,
        mut given: TagTokenIter<'_>,
        mut inside: TagBlock<'_, '_>,
        options: &Language,
    ) -> Result<Box<dyn Renderable>> {
        let name = given.expect_next("Identifier expected")?.expect_identifier().into_result()?;
        let name = KString::from_ref(name);
        given.expect_nothing()?;
        let inside_parsed = Template::new(inside.parse_all(options)?);
        inside.assert_empty();
        Ok(Box::new(Capture { name, inside: inside_parsed, meter: Arc::clone(&self.0) }))
    }

    fn reflection(&self) -> &dyn BlockReflection {
        self
    }
}

#[derive(Debug)]
struct Capture {
    name: KString,
    inside: Template,
    meter: Arc<Meter>,
}

impl Renderable for Capture {
    fn render_to(&self, _: &mut dyn Write, runtime: &dyn Runtime) -> Result<()> {
        let captured = captured("capture", &self.inside, runtime, &self.meter)?;
        runtime.set_global(self.name.clone(), Value::scalar(captured));
        Ok(())
    }
}

/// `{% ifchanged %}…{% endifchanged %}`
#[derive(Clone)]
pub(super) struct IfChangedBlock(pub(super) Arc<Meter>);

impl BlockReflection for IfChangedBlock {
    fn start_tag(&self) -> &'static str {
        "ifchanged"
    }

    fn end_tag(&self) -> &'static str {
        "endifchanged"
    }

    fn description(&self) -> &'static str {
        ""
    }
}

impl ParseBlock for IfChangedBlock {
    fn parse(
        &self,
        mut given: TagTokenIter<'_>,
        mut inside: TagBlock<'_, '_>,
        options: &Language,
    ) -> Result<Box<dyn Renderable>> {
        given.expect_nothing()?;
        let inside_parsed = Template::new(inside.parse_all(options)?);
        inside.assert_empty();
        Ok(Box::new(IfChanged { inside: inside_parsed, meter: Arc::clone(&self.0) }))
    }

    fn reflection(&self) -> &dyn BlockReflection {
        self
    }
}

#[derive(Debug)]
struct IfChanged {
    inside: Template,
    meter: Arc<Meter>,
}

/// What the last `ifchanged` came to, for the next.
#[derive(Debug, Default, Clone)]
struct LastSeen(Option<String>);

impl Renderable for IfChanged {
    fn render_to(&self, writer: &mut dyn Write, runtime: &dyn Runtime) -> Result<()> {
        let now = captured("ifchanged", &self.inside, runtime, &self.meter)?;
        let mut last = runtime.registers().get_mut::<LastSeen>();
        if last.0.as_deref() != Some(&now) {
            writer.write_all(now.as_bytes()).replace("Failed to render")?;
            last.0 = Some(now);
        }
        Ok(())
    }
}

/// What a block comes to, kept in memory within its bound.
fn captured(what: &str, inside: &Template, runtime: &dyn Runtime, meter: &Meter) -> Result<String> {
    let mut kept = Bounded::new(LARGEST_VALUE);
    let rendered = inside.render_to(&mut kept, runtime);
    if kept.is_full {
        return meter.too_large(what);
    }
    rendered?;
    meter.keep(what, kept.bytes.len())?;
    String::from_utf8(kept.bytes).map_err(|_| Error::with_msg("the text came out as no text"))
}

/// Takes as many bytes as it may, and then refuses.
pub(super) struct Bounded {
    pub(super) bytes: Vec<u8>,
    pub(super) is_full: bool,
    most: usize,
}

impl Bounded {
    pub(super) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), is_full: false, most }
    }
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let left = self.most - self.bytes.len();
        if more.len() > left {
            // What fits is kept, for a reader who wants the beginning.
            self.bytes.extend_from_slice(&more[..left]);
            self.is_full = true;
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
