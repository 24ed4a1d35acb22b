"""Kinds of objects: code that makes each, and code that checks the restored one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind of object.

    Attributes:
        name: Of the kind.
        make: Code of a cell.
        check: Code that runs in the restored kernel.
        lost: Type that is listed as lost, by variable.
    """

    name: str
    make: str
    check: str
    lost: tuple[str, str] | None = None


def _kind(name: str, make: str, check: str, lost: tuple[str, str] | None = None) -> Kind:
    return Kind(name, make, check, lost)


_LOST = "assert 'LostObject' in type({0}).__name__ and repr({0})"


def _lost(name: str, make: str, variable: str, kind: str) -> Kind:
    return Kind(name, make, _LOST.format(variable), (variable, kind))


LIBRARIES = [
    _kind("frame", "k_df = pd.DataFrame({'a': [1., 2], 'b': [1, 2], 's': ['x', None]})",
          "pd.testing.assert_frame_equal(k_df, pd.DataFrame({'a': [1., 2], 'b': [1, 2], 's': ['x', None]}))"),
    _kind("categorical", "k_cat = pd.DataFrame({'c': pd.Categorical(['a', 'b', 'a'])})",
          "assert list(k_cat.c.cat.categories) == ['a', 'b']; assert k_cat.c.dtype == 'category'"),
    _kind("arrow frame", "k_arrow = pd.DataFrame({'l': [[1, 2], [3]], 's': ['x', 'y']}).convert_dtypes(dtype_backend='pyarrow')",
          "assert 'pyarrow' in str(k_arrow.s.dtype); k_arrow.loc[0, 's'] = 'z'; assert list(k_arrow.s) == ['z', 'y']"),
    _kind("nullable", "k_null = pd.array([1, None, 3], dtype='Int64'); k_nulls = pd.Series([True, None], dtype='boolean')",
          "assert k_null[1] is pd.NA; assert k_null.sum() == 4; assert k_nulls.isna().sum() == 1"),
    _kind("multiindex", "k_mi = pd.DataFrame({'v': range(4)}, index=pd.MultiIndex.from_product([['a', 'b'], [1, 2]], names=['x', 'y']))",
          "assert k_mi.loc[('b', 1), 'v'] == 2; assert k_mi.index.names == ['x', 'y']"),
    _kind("time zones", "k_tz = pd.date_range('2020', periods=3, tz='Europe/Berlin'); k_tzf = pd.DataFrame({'t': k_tz})",
          "assert str(k_tz.tz) == 'Europe/Berlin'; assert k_tzf.t[1] == pd.Timestamp('2020-01-02', tz='Europe/Berlin')"),
    _kind("attrs", "k_attrs = pd.DataFrame({'a': [1]}); k_attrs.attrs['unit'] = 'kg'", "assert k_attrs.attrs == {'unit': 'kg'}"),
    _kind("groupby", "k_gb = pd.DataFrame({'g': [1, 1, 2], 'v': [1, 2, 3]}).groupby('g')", "assert list(k_gb.v.sum()) == [3, 3]"),
    _kind("period and interval", "k_per = pd.Period('2020-01'); k_int = pd.Interval(0, 1); k_pi = pd.Series(pd.period_range('2020', periods=3, freq='M')); k_ii = pd.interval_range(0, 3)",
          "assert k_per + 1 == pd.Period('2020-02'); assert 0.5 in k_int; assert str(k_pi[2]) == '2020-03'; assert len(k_ii) == 3"),
    _kind("sparse frame", "k_sp = pd.DataFrame({'a': pd.arrays.SparseArray([0, 0, 1])})", "assert k_sp.a.sum() == 1; assert k_sp.a.sparse.density < .5"),
    _kind("pandas singletons", "k_na = [pd.NA, pd.NaT]", "assert k_na[0] is pd.NA and k_na[1] is pd.NaT"),
    _kind("rolling", "k_roll = pd.Series([1., 2, 3]).rolling(2)", "assert list(k_roll.sum())[1:] == [3, 5]"),
    _kind("arrow table", "import pyarrow as pa\nk_pa = pa.table({'a': list(range(20000))})", "assert k_pa.num_rows == 20000; assert k_pa['a'][19999].as_py() == 19999"),
    _kind("structured array", "k_st = np.array([(1, 2.)], dtype=[('a', 'i4'), ('b', 'f8')])", "assert k_st['b'][0] == 2"),
    _kind("object array", "k_ob = np.array([1, 'a', None], dtype=object)", "assert list(k_ob) == [1, 'a', None]"),
    _kind("masked array", "k_ma = np.ma.array([1, 2], mask=[0, 1])", "assert k_ma.sum() == 1"),
    _kind("fortran order", "k_fo = np.asfortranarray(np.arange(20000.).reshape(100, 200))", "assert k_fo.flags.f_contiguous and k_fo[3, 4] == 604"),
    _kind("strided", "k_stride = np.arange(40000.)[::2]", "assert k_stride[3] == 6 and k_stride.flags.writeable"),
    _kind("read only array", "k_ro = np.arange(20000.); k_ro.flags.writeable = False", "assert not k_ro.flags.writeable and k_ro[5] == 5"),
    _kind("memmap", "k_mm = np.memmap('mm.bin', 'f8', 'w+', shape=(10,)); k_mm[:] = 3; k_mm.flush(); k_mms = k_mm[2:4]",
          "assert type(k_mm) is np.memmap and k_mm[4] == 3 and k_mm.mode == 'r+'; k_mm[2] = 8; assert k_mms[0] == 8"),
    _kind("numpy generator", "k_rng = np.random.default_rng(5); k_rng.random(); import copy; k_next = copy.deepcopy(k_rng).random()", "assert k_rng.random() == k_next"),
    _kind("numpy scalars", "k_sc = [np.float32(1.5), np.int8(3), np.datetime64('2020'), np.bool_(True), np.sin, np.dtype('f4')]",
          "assert k_sc[0].dtype == 'f4' and k_sc[1] == 3 and k_sc[2] == np.datetime64('2020') and k_sc[4] is np.sin"),
    _kind("polynomial", "k_poly = np.poly1d([1, 2]); k_poly2 = np.polynomial.Polynomial([1, 2])", "assert k_poly(1) == 3 and k_poly2(1) == 3"),
    _kind("polars frame", "import polars as pl\nk_pl = pl.DataFrame({'a': range(20000), 's': ['x'] * 20000, 'c': pl.Series(['u', 'v'] * 10000, dtype=pl.Categorical), 'e': [[1]] * 20000})",
          "assert k_pl['a'].sum() == 199990000 and k_pl.schema['c'] == pl.Categorical and k_pl['e'].dtype == pl.List(pl.Int64) and k_pl.columns == ['a', 's', 'c', 'e']"),
    _kind("polars series", "k_pls = pl.Series('n', [1, None, 3], dtype=pl.Int16)", "assert k_pls.dtype == pl.Int16 and k_pls.null_count() == 1 and k_pls.name == 'n'"),
    _lost("lazy frame", "k_lazy = pl.LazyFrame({'a': [1]})", "k_lazy", "LazyFrame"),
    _kind("sklearn pipeline", "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler\nfrom sklearn.linear_model import LinearRegression\nk_pipe = make_pipeline(StandardScaler(), LinearRegression()).fit([[0.], [1], [2]], [0, 2, 4])",
          "assert abs(k_pipe.predict([[3.]])[0] - 6) < 1e-9"),
    _kind("sklearn forest", "from sklearn.ensemble import RandomForestClassifier\nk_forest = RandomForestClassifier(3, random_state=0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])", "assert list(k_forest.predict([[0], [3]])) == [0, 1]"),
    _kind("scipy", "import scipy.sparse, scipy.stats, scipy.interpolate\nk_csr = scipy.sparse.csr_matrix([[0, 1], [2, 0]]); k_norm = scipy.stats.norm(1, 2); k_spl = scipy.interpolate.interp1d([0, 1], [0, 2])",
          "assert k_csr.sum() == 3; assert k_norm.mean() == 1; assert k_spl(.5) == 1; assert scipy.stats"),
    _kind("figure and axes", "plt.switch_backend('agg')\nk_fig, k_ax = plt.subplots(); k_line, = k_ax.plot([1, 2, 3]); k_ax.set_title('t')",
          "assert k_ax.figure is k_fig and k_line in k_ax.lines and k_ax.get_title() == 't'; k_fig.canvas.draw()"),
    _kind("figure with a lambda", "k_fig2, k_ax2 = plt.subplots(); k_ax2.xaxis.set_major_formatter(lambda v, p: 'v'); k_ax2.plot([1, 2])",
          "k_fig2.canvas.draw(); assert k_ax2.xaxis.get_major_formatter()(1) == 'v'"),
    _kind("image", "from PIL import Image\nk_img = Image.new('RGB', (3, 4), 'red')", "assert k_img.size == (3, 4) and k_img.getpixel((0, 0)) == (255, 0, 0)"),
    _lost("progress bar", "from tqdm import tqdm\nk_bar = tqdm(range(3), disable=True)", "k_bar", "tqdm"),
    _kind("http client", "import httpx2\nk_http = httpx2.URL('https://example.org/a?b=c'); k_hdr = httpx2.Headers({'a': 'b'})", "assert k_http.host == 'example.org' and k_hdr['A'] == 'b'"),
    _kind("pydantic", "import pydantic\nclass KModel(pydantic.BaseModel):\n    a: int\n    b: list[str] = []\nk_model = KModel(a='3')", "assert isinstance(k_model, KModel) and k_model.a == 3 and KModel(a='4').a == 4"),
    _kind("attrs class", "import attr\n@attr.s(auto_attribs=True, slots=True)\nclass KAttr:\n    a: int = 3\nk_attr = KAttr(4)", "assert isinstance(k_attr, KAttr) and k_attr == KAttr(4)"),
    _kind("module with submodules", "import xml.etree.ElementTree\nk_xml = xml.etree.ElementTree.fromstring('<a b=\"1\"><c/></a>')", "assert xml.etree.ElementTree and k_xml.get('b') == '1' and k_xml[0].tag == 'c'"),
]  # fmt: skip

LANGUAGE = [
    _kind("plain values", "k_i, k_f, k_s, k_b, k_c, k_n, k_e = 1, 2.5, 'x', b'y', 3j, None, ...", "assert (k_i, k_f, k_s, k_b, k_c, k_n, k_e) == (1, 2.5, 'x', b'y', 3j, None, ...)"),
    _kind("alias", "k_l = [1]; k_al = k_l; k_d = {'l': k_l}", "assert k_al is k_l and k_d['l'] is k_l"),
    _kind("cyclic", "k_cy = []; k_cy.append(k_cy); k_cd = {}; k_cd['me'] = k_cd\nclass KNode: pass\nk_na1, k_nb1 = KNode(), KNode(); k_na1.o, k_nb1.o = k_nb1, k_na1",
          "assert k_cy[0] is k_cy and k_cd['me'] is k_cd and k_na1.o is k_nb1 and k_nb1.o is k_na1"),
    _kind("shared frame", "k_sf = pd.DataFrame({'a': [1]}); k_sfl = [k_sf]; k_sfd = {'f': k_sf}", "assert k_sfl[0] is k_sf and k_sfd['f'] is k_sf; k_sf['b'] = 2; assert 'b' in k_sfl[0]"),
    _kind("closures", "def k_counter():\n    n = 0\n    def up():\n        nonlocal n; n += 1\n    def get():\n        return n\n    return up, get\nk_up, k_get = k_counter()", "k_up(); k_up(); assert k_get() == 2"),
    _kind("recursive closure", "def k_make():\n    def f(n): return 1 if n == 0 else n * f(n - 1)\n    def even(n): return n == 0 or odd(n - 1)\n    def odd(n): return n > 0 and even(n - 1)\n    return f, even\nk_fac, k_even = k_make()",
          "assert k_fac(5) == 120 and k_even(4) and not k_even(3)"),
    _kind("globals", "k_g = 1\ndef k_use(): return k_g\ndef k_a(n): return 0 if n == 0 else k_bb(n - 1)\ndef k_bb(n): return 1 if n == 0 else k_a(n - 1)",
          "k_g = 7; assert k_use() == 7 and k_use.__globals__ is globals() and k_a(5) == 1"),
    _kind("function facts", "def k_fn(a, b=[1], *, c: int = 3) -> str:\n    'doc'\n    return b\nk_fn.tag = 't'\nk_default = k_fn.__defaults__[0]",
          "assert k_fn.__doc__ == 'doc' and k_fn.tag == 't' and k_fn.__annotations__ == {'c': int, 'return': str} and k_fn(0) is k_default and k_fn.__kwdefaults__ == {'c': 3}; import inspect; assert str(inspect.signature(k_fn)) == '(a, b=[1], *, c: int = 3) -> str'"),
    _kind("lambda and partial", "import functools, operator\nk_lam = lambda x: x + k_two\nk_two = 2\nk_part = functools.partial(k_lam, 3)", "assert k_lam(1) == 3 and k_part() == 5 and k_part.func is k_lam"),
    _kind("decorators", "def k_deco(f):\n    calls = []\n    @functools.wraps(f)\n    def inner(*a):\n        calls.append(a); return f(*a)\n    inner.calls = calls\n    return inner\n@k_deco\ndef k_decorated(x): return x\nk_decorated(1)",
          "k_decorated(2); assert k_decorated.calls == [(1,), (2,)] and k_decorated.__wrapped__(3) == 3"),
    _kind("lru cache", "@functools.lru_cache(maxsize=7)\ndef k_fib(n): return n if n < 2 else k_fib(n - 1) + k_fib(n - 2)\nk_fib(20)", "assert k_fib(20) == 6765 and k_fib.cache_parameters()['maxsize'] == 7"),
    _kind("singledispatch", "@functools.singledispatch\ndef k_disp(x): return 'any'\n@k_disp.register\ndef _(x: int): return 'int'\nk_disp(1); del _", "assert k_disp(1) == 'int' and k_disp('a') == 'any'; k_disp.register(str, lambda x: 'str'); assert k_disp('a') == 'str'"),
    _kind("cached property", "class KCached:\n    made = 0\n    @functools.cached_property\n    def v(self):\n        type(self).made += 1; return 5\nk_cached = KCached(); k_cached.v", "assert k_cached.v == 5 and KCached.made == 1 and KCached().v == 5"),
    _kind("class hierarchy", "class KBase:\n    registry = []\n    def __init__(self, x): self.x = x; self.registry.append(self)\n    def hi(self): return 'base'\nclass KSub(KBase):\n    def __init__(self, x): super().__init__(x)\n    def hi(self): return super().hi() + __class__.__name__\n    @property\n    def p(self): return self.x\n    @staticmethod\n    def s(): return 's'\n    @classmethod\n    def c(cls): return cls\nk_sub = KSub(3); k_meth = k_sub.hi",
          "assert isinstance(k_sub, KSub) and isinstance(k_sub, KBase) and k_sub.hi() == 'baseKSub' and k_sub.p == 3 and KSub.s() == 's' and k_sub.c() is KSub and KBase.registry[0] is k_sub and k_meth.__self__ is k_sub and k_meth() == 'baseKSub'"),
    _kind("class made twice", "class KTwice: v = 1\nk_old = KTwice()\nclass KTwice: v = 2\nk_new = KTwice()", "assert k_old.v == 1 and k_new.v == 2 and isinstance(k_new, KTwice) and not isinstance(k_old, KTwice)"),
    _kind("dataclasses", "import dataclasses\n@dataclasses.dataclass(slots=True, frozen=True)\nclass KPoint:\n    x: int\n    y: list = dataclasses.field(default_factory=list)\nk_point = KPoint(1)", "assert k_point == KPoint(1) and isinstance(k_point, KPoint) and dataclasses.replace(k_point, x=2).x == 2 and dataclasses.fields(KPoint)[1].default_factory is list"),
    _kind("enums", "import enum\nclass KColor(enum.Enum):\n    RED = 1\n    def hi(self): return self.name\nclass KFlag(enum.Flag):\n    A = enum.auto(); B = enum.auto()\nclass KStr(enum.StrEnum):\n    X = 'x'\nk_red, k_ab, k_x = KColor.RED, KFlag.A | KFlag.B, {KStr.X: 1}", "assert k_red is KColor.RED and k_red.hi() == 'RED' and KFlag.A in k_ab and k_x['x'] == 1 and k_ab == KFlag.A | KFlag.B"),
    _kind("named tuples", "import collections, typing\nKPair = collections.namedtuple('KPair', 'a b')\nclass KTyped(typing.NamedTuple):\n    a: int\n    b: str = 'x'\nclass KPairSub(KPair):\n    def sum(self): return self.a + self.b\nk_pair, k_typed, k_psub = KPair(1, 2), KTyped(1), KPairSub(1, 2)", "assert k_pair.b == 2 and isinstance(k_pair, KPair) and k_typed == KTyped(1) and k_psub.sum() == 3"),
    _kind("abc and protocol", "import abc\nclass KAbc(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\nclass KImpl(KAbc):\n    def f(self): return 1\nclass KVirtual: pass\nKAbc.register(KVirtual)\n@typing.runtime_checkable\nclass KProto(typing.Protocol):\n    def f(self): ...\nk_impl, k_virtual = KImpl(), KVirtual()", "assert isinstance(k_impl, KAbc) and isinstance(k_virtual, KAbc) and isinstance(k_impl, KProto) and not isinstance(3, KProto)\ntry:\n    KAbc(); raise AssertionError\nexcept TypeError: pass"),
    _kind("generics", "KT = typing.TypeVar('KT')\nclass KBox(typing.Generic[KT]):\n    def __init__(self, v: KT): self.v = v\nk_box = KBox[int](3); k_alias = dict[str, list[int]]; k_union = int | None; k_opt = typing.Optional[KBox[int]]\nclass KTd(typing.TypedDict):\n    a: int", "assert isinstance(k_box, KBox) and k_box.v == 3 and KBox.__parameters__ == (KT,) and k_alias == dict[str, list[int]] and k_union == int | None and KTd(a=1) == {'a': 1}"),
    _kind("metaclass", "class KMeta(type):\n    made = []\n    def __new__(m, n, b, d): return super().__new__(m, n, b, d)\n    def __call__(c, *a): o = super().__call__(*a); o.by = 'meta'; return o\nclass KWith(metaclass=KMeta): pass\nk_with = KWith()", "assert type(KWith) is KMeta and isinstance(k_with, KWith) and k_with.by == 'meta' and KWith().by == 'meta'"),
    _kind("descriptors", "class KDesc:\n    def __set_name__(self, o, n): self.n = n\n    def __get__(self, o, t=None): return o.__dict__.get(self.n, 0) if o else self\n    def __set__(self, o, v): o.__dict__[self.n] = v * 2\nclass KHas:\n    d = KDesc()\nk_has = KHas(); k_has.d = 4", "assert k_has.d == 8; k_has.d = 1; assert k_has.d == 2"),
    _kind("singleton by name", "class KMissing:\n    def __reduce__(self): return 'K_MISSING'\nK_MISSING = KMissing(); k_miss = [K_MISSING]", "assert k_miss[0] is K_MISSING"),
    _kind("graph by hand", "class KGraph:\n    def __init__(self): self.adj = {}\n    def edge(self, a, b): self.adj.setdefault(a, {})[b] = self.adj.setdefault(b, {})[a] = {'w': 1}\nk_graph = KGraph(); k_graph.edge(1, 2); k_graph.edge(2, 3); k_data = k_graph.adj[1][2]", "assert k_graph.adj[1][2] is k_graph.adj[2][1] is k_data"),
    _kind("linked lists", "class KLink:\n    def __init__(self, n): self.n = n\nk_chain = None\nfor k_j in range(5000): k_chain = KLink(k_chain)\nk_nest = []\nfor k_j in range(5000): k_nest = [k_nest]", "k_depth = 0; k_at = k_chain\nwhile k_at.n: k_at = k_at.n; k_depth += 1\nassert k_depth == 4999"),
    _kind("equality by value", "class KEq:\n    def __init__(self, v): self.v = v\n    def __eq__(self, o): return self.v == o.v\n    def __hash__(self): return hash(self.v)\nk_eq = {KEq(1): 'a'}; k_eqs = {KEq(2)}", "assert k_eq[KEq(1)] == 'a' and KEq(2) in k_eqs"),
    _kind("getattr class", "class KProxy:\n    def __init__(self, o): self.__dict__['o'] = o\n    def __getattr__(self, n): return getattr(self.__dict__.get('o'), n)\nk_proxy = KProxy([1]); k_proxy.append(2)", "assert k_proxy.o == [1, 2] and k_proxy.index(2) == 1"),
    _kind("iterators", "import itertools\nk_it = iter([1, 2, 3]); next(k_it); k_zip = zip([1, 2], 'ab'); next(k_zip); k_map = map(k_lam, [1, 2]); k_count = itertools.count(5); next(k_count); k_enum = enumerate('ab'); k_range = range(5)",
          "assert list(k_it) == [2, 3] and list(k_zip) == [(2, 'b')] and list(k_map) == [3, 4] and next(k_count) == 6 and list(k_enum) == [(0, 'a'), (1, 'b')] and k_range == range(5)"),
    _kind("itertools", "k_chn = itertools.chain([1], [2]); k_prod = itertools.product('ab', repeat=2); next(k_prod); k_isl = itertools.islice([1, 2, 3], 2); k_cyc = itertools.cycle([1, 2]); next(k_cyc); k_acc = itertools.accumulate([1, 2])", "assert list(k_chn) == [1, 2] and next(k_prod) == ('a', 'b') and list(k_isl) == [1, 2] and next(k_cyc) == 2 and list(k_acc) == [1, 3]"),
    _kind("operator", "k_ag = operator.attrgetter('a.b'); k_ig = operator.itemgetter(1); k_mc = operator.methodcaller('upper')", "assert k_ig([1, 2]) == 2 and k_mc('a') == 'A' and 'a.b' in repr(k_ag)"),
]  # fmt: skip

STANDARD = [
    _kind("collections", "from collections import *\nk_dd = defaultdict(lambda: 7, a=1); k_od = OrderedDict(b=1, a=2); k_ct = Counter('aab'); k_dq = deque([1, 2], maxlen=2); k_cm = ChainMap({'a': 1}, {'b': 2}); k_ud = UserDict(a=1)", "assert k_dd['z'] == 7 and list(k_od) == ['b', 'a'] and k_ct['a'] == 2 and k_dq.maxlen == 2 and k_cm['b'] == 2 and k_ud['a'] == 1"),
    _kind("dict subclass", "class KDict(dict):\n    def __missing__(self, k): return k * 2\nk_kd = KDict(a=1); k_kd.extra = 5", "assert k_kd['zz'] == 'zzzz' and k_kd['a'] == 1 and k_kd.extra == 5 and isinstance(k_kd, KDict)"),
    _kind("sets", "k_set = {1, (2, 3)}; k_fset = frozenset([1]); k_views = {'a': 1}.keys(), {'a': 1}.items()", "assert k_set == {1, (2, 3)} and k_fset == {1} and list(k_views[0]) == ['a']"),
    _kind("bytes", "import array\nk_ba = bytearray(b'abc'); k_mv = memoryview(k_ba)[1:]; k_arr = array.array('d', [1, 2]); k_mvb = memoryview(b'xyz'); k_mva = memoryview(k_arr)", "k_mv[0] = 90; assert k_ba == b'aZc' and type(k_mv) is memoryview and k_arr[1] == 2 and bytes(k_mvb) == b'xyz' and k_mvb.readonly and k_mva[1] == 2.0"),
    _kind("times", "import datetime, zoneinfo\nk_dt = datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Paris')); k_td = datetime.timedelta(1); k_zi = k_dt.tzinfo; k_dtz = datetime.timezone.utc", "assert k_dt.tzinfo is k_zi and str(k_zi) == 'Europe/Paris' and k_td.days == 1 and k_dtz is datetime.timezone.utc"),
    _kind("numbers", "from decimal import Decimal\nfrom fractions import Fraction\nimport uuid, ipaddress\nk_num = Decimal('1.10'), Fraction(1, 3), uuid.UUID(int=5), ipaddress.ip_address('127.0.0.1')", "assert str(k_num[0]) == '1.10' and k_num[1] == Fraction(1, 3) and k_num[2].int == 5 and k_num[3].is_loopback"),
    _kind("paths and patterns", "from pathlib import Path\nimport re\nk_path = Path('a') / 'b'; k_re = re.compile('a(b)', re.I)", "assert k_path.name == 'b' and k_re.match('AB').group(1) == 'B'"),
    _kind("mapping proxy", "import types\nk_proxyd = types.MappingProxyType({'a': 1}); k_ns = types.SimpleNamespace(a=[1], b=2)", "assert k_proxyd['a'] == 1 and type(k_proxyd) is types.MappingProxyType and k_ns.a == [1]"),
    _kind("in memory files", "import io\nk_bio = io.BytesIO(b'abc'); k_bio.read(1); k_sio = io.StringIO('abc'); k_sio.read(2)", "assert k_bio.read() == b'bc' and k_sio.read() == 'c'"),
    _kind("exceptions", "try: 1 / 0\nexcept Exception as k_err_: k_err = k_err_\nclass KError(ValueError):\n    def __init__(self, m): super().__init__(m); self.m = m\nk_kerr = KError('x'); k_kerr.add_note('n')", "assert isinstance(k_err, ZeroDivisionError) and 'division' in str(k_err) and isinstance(k_kerr, KError) and k_kerr.m == 'x' and k_kerr.__notes__ == ['n']"),
    _kind("loggers", "import logging\nk_log = logging.getLogger('k.one')", "assert k_log is logging.getLogger('k.one')"),
    _kind("random", "import random\nk_rand = random.Random(3); k_rand.random(); k_rn = random.Random(3); k_rn.random(); k_expect = k_rn.random()", "assert k_rand.random() == k_expect"),
    _kind("modules", "import os.path as k_osp, json as k_json", "import os.path, json; assert k_osp is os.path and k_json is json"),
    _kind("builtins", "k_builtins = [len, [].append, 'x'.upper, int, type, print, str.join, dict.fromkeys, math_sqrt] if False else [len, 'x'.upper, int, print, str.join, dict.fromkeys]", "assert k_builtins[0] is len and k_builtins[1]() == 'X' and k_builtins[4](',', ['a']) == 'a'"),
    _kind("types of types", "k_types = [type(None), type(...), types.FunctionType, types.GeneratorType, NotImplemented, slice(1, 2), types.CodeType]", "assert k_types[0] is type(None) and k_types[2] is types.FunctionType and k_types[4] is NotImplemented and k_types[5] == slice(1, 2)"),
    _kind("locks", "import threading, queue\nk_lock = threading.Lock(); k_lock.acquire(); k_holders = [k_lock, k_lock]\nk_q = queue.Queue(); k_q.put(5); k_ev = threading.Event(); k_ev.set(); k_sem = threading.Semaphore(2); k_cond = threading.Condition()", "assert not k_lock.locked() and k_holders[0] is k_lock and k_q.get(timeout=1) == 5 and k_ev.is_set()\nwith k_cond: k_cond.notify_all()\nk_q.put(1)"),
    _kind("weak dicts", "import weakref\nclass KRef: pass\nk_ref = KRef(); k_wvd = weakref.WeakValueDictionary(a=k_ref); k_wkd = weakref.WeakKeyDictionary({k_ref: 1}); k_wset = weakref.WeakSet([k_ref])", "assert k_wvd['a'] is k_ref and k_wkd[k_ref] == 1 and k_ref in k_wset"),
    _kind("contextlib", "import contextlib\n@contextlib.contextmanager\ndef k_ctx(v): yield v + 1\nk_null_ctx = contextlib.nullcontext(5); k_supp = contextlib.suppress(KeyError); k_stack = contextlib.ExitStack()", "with k_ctx(1) as k_v: assert k_v == 2\nwith k_null_ctx as k_v: assert k_v == 5\nwith k_supp: {}['a']\nwith k_stack: pass"),
    _kind("closed file", "with open('closed.txt', 'w') as k_closed: k_closed.write('x')", "assert k_closed.closed and k_closed.name == 'closed.txt'\ntry: k_closed.read(); raise AssertionError\nexcept ValueError: pass"),
    _kind("file open for reading", "Path('r.txt').write_text('one\\ntwo\\n'); k_read = open('r.txt'); k_read.readline(); k_readb = open('r.txt', 'rb'); k_readb.read(2)", "assert k_read.readline() == 'two\\n' and k_readb.read(2) == b'e\\n'; k_read.close(); k_readb.close()"),
    _lost("file open for writing", "k_write = open('w.txt', 'w')", "k_write", "TextIOWrapper"),
    _kind("standard streams", "import sys\nk_out = [sys.stdout, sys.stderr]", "assert k_out[0] is sys.stdout"),
    _kind("environment", "import os\nk_env = os.environ", "assert k_env is os.environ"),
    _kind("ended process", "import subprocess\nk_done = subprocess.run(['true']); k_popen = subprocess.Popen(['true']); k_popen.wait()", "assert k_done.returncode == 0 and k_popen.returncode == 0"),
    _lost("running process", "k_running = subprocess.Popen(['cat'], stdin=subprocess.PIPE)", "k_running", "Popen"),
    _lost("generator", "k_gen = (x for x in [1])", "k_gen", "generator"),
    _lost("coroutine", "async def k_co_fn(): pass\nk_coro = k_co_fn()", "k_coro", "coroutine"),
    _lost("match", "k_match = re.match('a', 'ab')", "k_match", "Match"),
    _lost("weak reference", "k_wref = weakref.ref(k_ref)", "k_wref", "ReferenceType"),
    _lost("context variable", "import contextvars\nk_cv = contextvars.ContextVar('v')", "k_cv", "ContextVar"),
    _lost("csv reader", "import csv\nk_csv = csv.reader(['a,b'])", "k_csv", "reader"),
    _lost("connection", "import sqlite3\nk_con = sqlite3.connect(':memory:')", "k_con", "sqlite3.Connection"),
    _lost("cursor", "k_cur = k_con.execute('select 1')", "k_cur", "sqlite3.Cursor"),
    _lost("socket", "import socket\nk_sock = socket.socket()", "k_sock", "socket"),
    _lost("thread", "k_thread = threading.Thread(target=print)", "k_thread", "Thread"),
    _lost("thread pool", "from concurrent.futures import ThreadPoolExecutor\nk_pool = ThreadPoolExecutor(1)", "k_pool", "ThreadPoolExecutor"),
    _lost("zip open for writing", "import zipfile\nk_zipw = zipfile.ZipFile('w.zip', 'w')", "k_zipw", "ZipFile"),
    _kind("zip open for reading", "with zipfile.ZipFile('r.zip', 'w') as k_zw: k_zw.writestr('a', 'text')\nk_zipr = zipfile.ZipFile('r.zip')", "assert k_zipr.read('a') == b'text'; k_zipr.close()"),
    _lost("mmap", "import mmap\nk_mmap = mmap.mmap(-1, 10)", "k_mmap", "mmap"),
    _lost("hash object", "import hashlib\nk_hash = hashlib.sha256(b'a')", "k_hash", "HASH"),
    _lost("temporary file", "import tempfile\nk_tmp = tempfile.NamedTemporaryFile()", "k_tmp", "_TemporaryFileWrapper"),
    _lost("generator context", "k_gctx = k_ctx(3)", "k_gctx", "_GeneratorContextManager"),
    _lost("event loop", "import asyncio\nk_loop = asyncio.new_event_loop()", "k_loop", "EventLoop"),
    _lost("iterator over a generator", "k_mapgen = map(str, (x for x in [1]))", "k_mapgen", "map"),
    _lost("method of a connection", "k_exec = k_con.execute", "k_exec", "builtin"),
    _lost("thread local", "k_local = threading.local()", "k_local", "_local"),
    _lost("odd exception", "class KOdd(Exception):\n    def __init__(self, a, b): super().__init__(a)\nk_odd = KOdd(1, 2)", "k_odd", "KOdd"),
    _lost("endless getattr", "class KEndless:\n    def __getattr__(self, n): return getattr(self.inner, n)\nk_endless = KEndless.__new__(KEndless); k_endless.__dict__['x'] = 1", "k_endless", "KEndless"),
    _kind("holder of a lost object", "class KRepo:\n    def __init__(self): self.con = sqlite3.connect(':memory:'); self.cache = {'a': 1}\nk_repo = KRepo(); k_conns = [k_con, 1]", "assert k_repo.cache == {'a': 1} and isinstance(k_repo, KRepo) and k_conns[1] == 1\ntry: k_repo.con.execute; raise TypeError\nexcept AttributeError as k_e: assert '/rebuild' in str(k_e) and 'sqlite3.Connection' in str(k_e)\nassert not hasattr(k_repo.con, '__len__'); import copy, pickle; copy.deepcopy(k_repo); pickle.dumps(k_repo.con); repr(k_conns)", ("k_repo", "sqlite3.Connection")),
    _kind("shell", "k_shell = get_ipython()", "assert k_shell is get_ipython()"),
    _lost("namespace inside", "k_leak = {'deep': [globals()]}", "k_leak", "dict"),
    _lost("namespace", "k_globals = globals()", "k_globals", "dict"),
]  # fmt: skip

KINDS = [*LIBRARIES, *LANGUAGE, *STANDARD]
