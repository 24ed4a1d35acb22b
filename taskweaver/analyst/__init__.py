"""The offline analyst: requests in words, readings, code, answers; `about` describes files.

Everything here is pure: text and table profiles in, values and text out. No file is opened and no
code is run. `taskweaver.analyst.model` puts it behind the interface of a model.
"""
