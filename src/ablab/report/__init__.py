"""The report: what was judged, said as a page, tables, pictures, LaTeX and text."""
