"""Pictures of tables as SVG, and pages of them as HTML. They know numbers, not tables.

A picture is a specification of Vega or Vega-Lite, with its data, which the package `vl-convert-python` of the extra
`report` renders. Pages have no scripts, and load nothing. Names of columns are input of strangers: they are data of a
specification, never part of an expression, and `xml.etree.ElementTree` escapes them in pages.
"""
