"""Pictures of tables as SVG, and pages of them as HTML. They know numbers, not tables.

Elements are built by `xml.etree.ElementTree`, which escapes all texts: names of columns are input of strangers. Pages
have no scripts, and load nothing. Layouts of treemaps are those of `squarify`, a package of the extra `cli`.
"""
