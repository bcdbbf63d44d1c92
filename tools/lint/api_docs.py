"""Writes the API reference from the public headers; an undocumented declaration is a failure.

Usage: api_docs.py HEADERS OUTPUT
"""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from lint.api_markdown import write_pages
from lint.tree import report

# Everything that is read of a header; macros stay as they are but for the visibility attribute.
CONFIGURATION = """
INPUT = "{headers}"
FILE_PATTERNS = *.h
RECURSIVE = YES
STRIP_FROM_PATH = "{headers}/.."
OUTPUT_DIRECTORY = "{output}"
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
QUIET = YES
EXTRACT_ALL = NO
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = FAIL_ON_WARNINGS
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = "PALMSHED_EXPORT="
"""

_INLINE_NAMESPACE = "v1::"


@dataclass
class Declaration:
    kind: str  # "class", "struct", "function", "variable", "enum", "enumvalue", "typedef"
    name: str  # Qualified.
    text: str  # As C++ would say it.
    brief: str
    details: str
    where: str
    members: list["Declaration"] = field(default_factory=list)

    @property
    def documented(self) -> bool:
        return bool(self.brief or self.details)


def run_doxygen(headers: Path, output: Path) -> list[str]:
    """Fills output/xml and returns what Doxygen complained about, such as a broken reference."""
    output.mkdir(parents=True, exist_ok=True)
    configuration = CONFIGURATION.format(headers=headers.resolve(), output=output.resolve())
    run = subprocess.run(
        ["doxygen", "-"], input=configuration, capture_output=True, text=True, check=False
    )
    complaints = [line for line in run.stderr.splitlines() if line.strip()]
    if run.returncode != 0 and not complaints:
        complaints = ["doxygen failed"]
    return complaints


def prose(element: ElementTree.Element | None) -> str:
    """The text of a description as Markdown; paragraphs stay apart."""
    if element is None:
        return ""
    paragraphs = [inline(child).strip() for child in element if child.tag == "para"]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def inline(element: ElementTree.Element) -> str:
    parts = [element.text or ""]
    for child in element:
        inner = inline(child)
        parts.append(f"`{inner}`" if child.tag == "computeroutput" else inner)
        parts.append(child.tail or "")
    return "".join(parts)


def plain(element: ElementTree.Element | None) -> str:
    return "".join(element.itertext()).strip() if element is not None else ""


def public_name(name: str) -> str:
    return name.replace(_INLINE_NAMESPACE, "")


def where(element: ElementTree.Element) -> str:
    location = element.find("location")
    return f"{location.get('file')}:{location.get('line')}" if location is not None else "?"


def declaration_text(member: ElementTree.Element) -> str:
    kind, name = member.get("kind"), plain(member.find("name"))
    type_text = plain(member.find("type"))
    if kind == "enum":
        return f"enum class {name} : {type_text}"
    if kind == "typedef":
        return f"using {name} = {type_text}"
    prefix = "static " if member.get("static") == "yes" else ""
    suffix = plain(member.find("argsstring")) or " " + plain(member.find("initializer"))
    return f"{prefix}{type_text} {name}{suffix}".strip()


def read_member(member: ElementTree.Element, scope: str) -> Declaration:
    name = public_name(f"{scope}::{plain(member.find('name'))}" if scope else plain(member.find("name")))
    values = [
        Declaration(
            "enumvalue",
            f"{name}::{plain(value.find('name'))}",
            plain(value.find("name")),
            prose(value.find("briefdescription")),
            prose(value.find("detaileddescription")),
            where(member),
        )
        for value in member.findall("enumvalue")
    ]
    return Declaration(
        member.get("kind", ""),
        name,
        declaration_text(member),
        prose(member.find("briefdescription")),
        prose(member.find("detaileddescription")),
        where(member),
        values,
    )


def speaks_for_itself(member: ElementTree.Element, scope: str) -> bool:
    """Copy, move, destruction and inherited constructors need no words unless they surprise."""
    name, arguments = plain(member.find("name")), plain(member.find("argsstring"))
    own = scope.split("::")[-1]
    if name.startswith("~") or name == "operator=" or "=delete" in arguments.replace(" ", ""):
        return True
    if member.find("type") is not None and plain(member.find("type")).startswith("using"):
        return True
    parameters = [plain(parameter.find("type")) for parameter in member.findall("param")]
    return name == own and parameters in ([f"{own} &&"], [f"const {own} &"])


def read_compound(root: ElementTree.Element) -> Declaration:
    scope = plain(root.find("compoundname"))
    kind = root.get("kind", "")
    members = [
        read_member(member, scope)
        for member in root.iter("memberdef")
        if member.get("prot") == "public" and not speaks_for_itself(member, scope)
    ]
    return Declaration(
        kind,
        public_name(scope),
        f"{kind} {scope.split('::')[-1]}",
        prose(root.find("briefdescription")),
        prose(root.find("detaileddescription")),
        where(root),
        members,
    )


def read_reference(xml: Path) -> list[Declaration]:
    """Every compound of the public namespace, sorted by name; namespaces hold the free names."""
    compounds = []
    for file in sorted(xml.glob("*.xml")):
        root = ElementTree.parse(file).getroot().find("compounddef")
        if root is None or root.get("kind") not in ("class", "struct", "namespace"):
            continue
        if plain(root.find("compoundname")).split("::")[0] == "palmshed":
            compounds.append(read_compound(root))
    return sorted(compounds, key=lambda compound: compound.name)


def undocumented(compounds: list[Declaration]) -> tuple[int, list[str]]:
    checked, problems = 0, []
    for compound in compounds:
        wanted = list(compound.members)
        wanted += [value for member in compound.members for value in member.members]
        wanted += [compound] if compound.kind != "namespace" else []
        checked += len(wanted)
        problems += [f"{d.where}: {d.name} is not documented" for d in wanted if not d.documented]
    return checked, problems


def build(headers: Path, output: Path) -> tuple[int, list[str]]:
    complaints = run_doxygen(headers, output)
    compounds = read_reference(output / "xml")
    checked, problems = undocumented(compounds)
    write_pages(compounds, output / "api")
    return checked, complaints + problems


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__)
        return 2
    checked, problems = build(Path(arguments[0]), Path(arguments[1]))
    return report("API reference", checked, problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
