"""How Sphinx builds the site: `make docs`. No network is used, neither while building nor by the pages."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import accel_oct  # noqa: E402

project = "accel_oct"
author = "The accel_oct developers"
project_copyright = author
version = release = accel_oct.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "plain_signatures",
    "repository_pages",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# README.md is the index for readers of the repository; index.md is that of the site. Sphinx-gallery reads gallery/ and
# writes auto_examples/.
exclude_patterns = ["_build", "README.md", "gallery", "examples", "auto_examples/**/*.ipynb", "auto_examples/**/*.zip"]
templates_path = ["_templates"]
nitpicky = True
# Words of signatures that are no pages of this site: types of the standard library and of numpy, whose pages are on the
# network, short names of arrays, and a few types that are not public.
ARRAYS = [
    "ArrayLike",
    "Array",
    "Bools",
    "BoolArray",
    "BoolMatrix",
    "Floats",
    "FloatArray",
    "Ints",
    "IntArray",
    "WordArray",
]
nitpick_ignore_regex = [
    ("py:.*", r"(collections|fractions|pathlib|typing|logging|numpy|np|npt)\..*"),
    ("py:.*", "|".join(ARRAYS)),
    ("py:.*", r"accel_oct\.encoding\.scales\.Scale|accel_oct\.objectives\.base\.Amount"),
    (
        "py:.*",
        r"accel_oct\.constraints\.[a-z]+\.(Bound|_)[A-Za-z]+|accel_oct\.solving\.(frontier\.FrontierRun|result\.RunOutcome)",
    ),
    ("py:.*", r"accel_oct\.estimators\.base\.Tree(Classifier|Model)|accel_oct\.solving\.problem\.Problem"),
    ("py:.*", r"accel_oct\.certificates\.claim\.FeatureProblem"),
    ("py:.*", r"accel_oct\.solving\.near_optimal\.Setting|accel_oct\.formulation\.paths\.PathEnd"),
    (
        "py:.*",
        r"accel_oct\.exact\.(levels\.(Steps|Profile)|coded\.CodedProblem|samples\.(Row)?Samples)|accel_oct\.live\.display\.Moment|accel_oct\.tree\.tallied\.TalliedTrees",
    ),
    ("py:.*", r"accel_oct\.data\.weights\.ExactWeights|accel_oct\.formulation\.agreement\.Agreement"),
    ("py:.*", r"(deque$|Engine$|dict\[|Mapping\[|Nested|integer -- return).*"),
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
# Code in $...$ occurs in shell commands only, which are code blocks.
myst_dmath_allow_space = False
myst_dmath_allow_digits = False

autosummary_generate = True
# What scikit-learn's metadata routing adds to a class has links into scikit-learn's own pages.
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_predict_proba_request, set_score_request, set_transform_request, "
    "set_output, get_metadata_routing"
}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ARRAYS} | {"npt.ArrayLike": "ArrayLike"}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "plot_gallery": True,
    "capture_repr": (),
    "abort_on_example_error": True,
    "image_srcset": ["2x"],
    "write_computation_times": False,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "accel_oct"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"tutorial": [], "comparison": []}
