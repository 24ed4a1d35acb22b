"""The closed words of the request language: function words of English and a few of other languages.

No word of a data set is in here. A sense is a kind and a detail, such as ``fn`` and ``mean``.
"""

from __future__ import annotations

from typing import NamedTuple


class Sense(NamedTuple):
    """Sense of a phrase.

    Attributes:
        kind: Role in a request, such as ``fn`` for an aggregate function.
        detail: The member of that kind.
    """

    kind: str
    detail: str


_FUNCTIONS = """
fn mean: mean | means | average | averages | averaged | avg | on average | average value | typical
  | mean value | in the mean | durchschnitt | durchschnittlich | durchschnittliche | mittelwert
  | durchschnittlicher | durchschnittliches | mittlere | mittlerer | im durchschnitt | im mittel
  | moyenne | en moyenne | moyen | media | promedio | en promedio | medio | средняя | среднее | средний
  | средние | в среднем | gjennomsnitt | gjennomsnittlig | i gjennomsnitt | gennemsnit
  | gennemsnitlig | gennemsnitlige | medelvärde | gemiddelde | média | medias | 平均
fn median: median | medians | typical ( median ) | médiane | mediana | медиана | 中央値 | mediaan
  | typical median
fn sum: sum | sums | total | totals | in total | altogether | combined | overall total | summed
  | summed up | added up | sum total | all together | summe | gesamt | insgesamt | gesamte
  | gesamter | gesamtes | summieren | somme | au total | totale | suma | total general | сумма
  | сумму | итого | всего | samlet | i alt | totalt | 合計 | 総計 | soma | totaal
fn min: minimum | min | lowest value | smallest value | minima | minimal | niedrigste | kleinste
  | minimale | plus petit | plus bas | mínimo | mínima | минимум | минимальная | минимальный | laveste
  | mindste | 最小 | 最低 | minste | minimums
fn max: maximum | max | highest value | largest value | peak | maxima | maximal | höchste | größte
  | maximale | plus grand | plus haut | plus élevé | máximo | máxima | максимум | максимальная
  | максимальный | højeste | største | høyeste | 最大 | 最高 | maximums | maximal value
fn std: standard deviation | standard deviations | std | stdev | std dev | sd | stddev
  | standardabweichung | écart type | desviación estándar | desviación típica | standardavvik
fn var: variance | variances | varianz | var
fn range: range | spread between max and min | max minus min | difference between max and min
  | spannweite | maximum minus minimum | difference between maximum and minimum
  | difference between the maximum and the minimum | difference between minimum and maximum
  | difference between the highest and the lowest | difference between highest and lowest
fn iqr: interquartile range | iqr | inter quartile range
fn mode: mode | most common | most frequent | most often | commonest | most popular | häufigste
  | most frequently occurring | most commonly occurring | modal
fn leastmode: least common | least frequent | rarest | least often | least popular
fn correlation: correlation | correlated | correlate | correlates | correlation coefficient
  | pearson correlation | korrelation | corrélation | correlación | relationship
fn firstquartile: first quartile | lower quartile | 1st quartile
fn thirdquartile: third quartile | upper quartile | 3rd quartile
fn percentile: percentile | percentiles | pct percentile | quantile | quantiles
fn nunique: number of distinct | number of different | number of unique | how many distinct
  | how many different | how many unique | count of distinct | count distinct | distinct count
  | unique count | count of unique | count of different | count the distinct | count the unique
  | count the different | count unique | count different | wie viele verschiedene
  | combien de différents | cuántos distintos | number of separate | number of individual
  | anzahl verschiedener | distinct count of | how many separate
fn count: how many | number of | count of | count | counts | how often | number | the number of
  | how many are there | total number of | total number | total count of | total count | in number
  | amount of | no of | row count | tally | how many times | wie viele | wieviele | anzahl
  | anzahl der | combien de | combien | nombre de | cuántos | cuántas | número de | cuántos hay
  | сколько | количество | число | hvor mange | antall | antal | いくつ | 何件 | 件数 | hoeveel
  | quanti | quante | quantos | quantas | hur många | overall number of | absolute number of
  | what number of | counting | numbers of
"""

_COMPARATORS = """
cmp >: more than | greater than | larger than | bigger than | higher than | over | above | exceeding
  | exceeds | exceed | exceeded | > | in excess of | upwards of | mehr als | größer als | über
  | plus de | plus que | supérieur à | supérieure à | más de | mayor que | mayor de | больше | более
  | mer enn | mere end | over end | warmer than | hotter than | heavier than | longer than | older than
  | taller than | costlier than | more expensive than | later than | wider than | deeper than
  | faster than | richer than | greater then | more then | beyond | is more than | outperforms
  | surpass | surpasses | surpassed | surpassing | topping | beats | stronger than | younger than:<
cmp <: less than | fewer than | smaller than | lower than | under | below | < | beneath
  | weniger als | kleiner als | unter | moins de | moins que | inférieur à | inférieure à | menos de
  | menor que | menor de | меньше | менее | mindre enn | mindre end | færre enn | colder than
  | cooler than | lighter than | shorter than | cheaper than | younger than | slower than
  | poorer than | narrower than | earlier than | less then | not reaching | thinner than
cmp >=: at least | no less than | not less than | not fewer than | no fewer than | >= | ≥
  | greater than or equal to | more than or equal to | minimum of | not below | not under
  | equal to or greater than | equal or greater than | mindestens | au moins | al menos | por lo menos
  | не менее | minst | from at least | a minimum of | larger than or equal to | or more than
cmp <=: at most | no more than | not more than | <= | ≤ | less than or equal to | up to
  | maximum of | not above | not over | not exceeding | equal to or less than | höchstens
  | maximal of | au plus | como máximo | не более | a maximum of | smaller than or equal to
  | no greater than | not greater than
cmp ==: equal to | equals | exactly | = | == | equalling | is equal to | precisely | gleich
  | égal à | igual a
cmp !=: != | <> | ≠ | not equal to | is not equal to | different from | unequal to | isn't equal to
tail >=: or more | or higher | or greater | or above | or over | or larger | or longer | or older
  | or heavier | and above | and more | and over | and up | or up | or better | and higher | or later
  | or after | and later | or newer | or bigger | upwards | and upwards | and older | oder mehr
  | ou plus | o más | or warmer | onwards | onward | on | and onwards | and after | plus
tail <=: or less | or fewer | or lower | or below | or under | or smaller | or shorter | or younger
  | or lighter | and below | and under | and less | and fewer | or earlier | or before | and earlier
  | or older than that | oder weniger | ou moins | o menos | or cheaper | or colder | and before
  | and younger
"""

_LOGIC = """
neg not: not | no | except | except for | excluding | exclude | excludes | without | without any
  | ignoring | ignore | other than | apart from | aside from | leaving out | leave out | but not
  | omitting | omit | non | isn't | aren't | wasn't | weren't | don't | doesn't | didn't | do not
  | does not | did not | is not | are not | was not | were not | never | outside | outside of
  | besides | bar the | save for | not counting | not including | if we exclude
  | if you exclude | barring | with no | having no | has no | have no | had no | not any | none of
  | exclusive of | nicht | ohne | außer | kein | keine | keinen | sans | sauf | excepté | ne pas | sin
  | excepto | salvo | кроме | без | не | uten | unntatt | uden | undtagen | ikke | drop | dropping
  | rather than | hasn't | haven't | hadn't | skip | skipping | leave aside | leaving aside
  | disregarding | with the exception of | anything but | everything but | all but | cannot | can't
  | won't | wouldn't | couldn't | removing | remove | after removing | after excluding | discarding
  | after dropping | not in | not from | not on | not at | not of | excluded | lacking | with none of
neg neither: neither | neither of | weder
nor nor: nor | noch
or or: or | oder | ou | o | или | eller
and and: and | as well as | along with | und | et | и | og | och | & | plus also | and also | together with
between between: between | zwischen | entre | между | mellem | mellom | in between | ranging from
  | in the range | in the range of | within the range
"""

_TIME = """
time since: since | from since | seit | depuis | desde | siden | starting in | starting from | starting
  | beginning in | beginning | с начала | ever since | as of | as from
time before: before | prior to | earlier than | vor | avant | antes de | до | før | preceding | ahead of
  | previous to
time after: after | later than | following | nach | après | después de | после | etter | efter
  | subsequent to
time until: until | till | up to and including | through | up until | bis | jusqu'en | jusqu'à | hasta
  | indtil | up to | no later than | by the end of
time during: during | in the year | in the years | for the year | während | pendant | durante
  | in the course of | throughout | within
time from: from | von | de | du | desde | с | fra
to to: to | bis | à | au | a | hasta | по | til | through | until | till | - | – | up to | thru
unit year: year | years | yearly | annual | annually | calendar year | jahr | jahre | jahren | an | ans
  | année | années | año | años | год | года | году | år | per annum | yr | yrs | 年
unit quarter: quarter | quarters | quarterly | quartal | quartale | trimestre | kvartal
unit month: month | months | monthly | calendar month | calendar months | monat | monate | monaten
  | mois | mes | meses | месяц | месяца | месяцам | måned | måneder | 月
unit week: week | weeks | weekly | woche | wochen | semaine | semana | uke | uge
unit day: day | days | daily | date | dates | tag | tage | tagen | jour | jours | día | días | день | dag | dager
  | dage | calendar day
unit hour: hour | hours | hourly | stunde | stunden | heure | heures | hora | horas | time | time of day:hour
unit weekday: weekday | weekdays | day of the week | days of the week | day of week | wochentag
  | week day
"""

_KEYS = """
by by: by | per | for each | for every | in each | in every | each | every | across | grouped by
  | group by | broken down by | split by | split up by | on each | on every | at each | at every
  | of each | of every | from each | for all the different | for the different | by each | by the
  | according to | separately for | separated by | for different | across the different
  | across different | depending on | with each | within each | broken out by | segmented by
  | for each of the | for all the | by different | aggregated by | divided into | arranged by
  | per each | in each of the | for every single | for each single | pro | je | nach | par | por | por cada
  | по | per die | je nach | für jede | für jeden | für jedes | pour chaque | para cada | для каждого
  | for hver | for hvert | 別 | ごと | ごとの | voor elke | per il | given
over over: over time | through time | over the years | over the months | over the days | over years
  | over the course of time | as time goes by | across time | im zeitverlauf | with time
  | through the years | across the years | over the whole period | along time | historically
each each: compare | comparison of | compared | comparing | comparison | respectively
  | for both | both of | each of | vergleiche | comparer | compara | contrast | vs | versus
  | compared to | compared with | separately
"""

_RANKS = """
rank top: top | best | leading | les meilleurs | die besten
rank bottom: bottom | worst
rank first: first | head | opening
rank last: last | latest | tail | final | most recent | past | previous
sup max: highest | largest | biggest | greatest | most | maximal one | the most | largest number of
  | highest number of | greatest number of | most number of | strongest | broadest | grösste
  | am meisten | die meisten | le plus de | el mayor | highest overall | maximum number of
sup min: lowest | smallest | least | fewest | the least | the fewest | lowest number of
  | smallest number of | minimum number of | fewest number of | weakest | slightest
  | am wenigsten | die wenigsten | le moins de | el menor | tiniest
ordinal 2: second | 2nd | runner up
ordinal 3: third | 3rd
ordinal 4: fourth | 4th
ordinal 5: fifth | 5th
ordinal 6: sixth | 6th
ordinal 7: seventh | 7th
ordinal 8: eighth | 8th
ordinal 9: ninth | 9th
ordinal 10: tenth | 10th
sort sort: sort | sorted | sorted by | sort by | order by | ordered by | rank | ranked | ranked by
  | rank by | order them by | in order of | sort them by | sort it by | sort that by | ranking of
  | in order | sortiere nach | trier par | ordenar por | arrange by | sort these by | sort this by
  | sort it | sort that | sort them | sort this | order it by | ordering by | put in order of | ranking
  | rank the | rank them by | order the
dir desc: descending | desc | in descending order | largest first | highest first | biggest first
  | from highest to lowest | from largest to smallest | high to low | from high to low | most first
  | decreasing | in decreasing order | from most to least | absteigend | décroissant | largest to smallest
  | highest to lowest | from the highest to the lowest | newest first | latest first | from top to bottom
  | from biggest to smallest | descendingly | descending order | greatest first | from best to worst
  | longest first | oldest first:desc | reverse order | the other way round | in reverse | most to least
dir asc: ascending | asc | in ascending order | smallest first | lowest first | least first
  | from lowest to highest | from smallest to largest | low to high | from low to high | increasing
  | in increasing order | from least to most | aufsteigend | croissant | smallest to largest
  | lowest to highest | from the lowest to the highest | ascending order | earliest first | shortest first
"""

_STEPS = """
share share: share | share of | percentage | percentage of | percent of | percent | fraction
  | fraction of | proportion | proportion of | what part of | part of the total | what percent
  | as a percentage | as percentage | in percent | in percentages | as percentages | as a share
  | as a percentage of the total | relative frequency | relative frequencies | as a fraction
  | what percentage | as share | as fractions | percentages | shares | proportions | what proportion of
  | what fraction of | what share of | anteil | prozentsatz | prozent | pourcentage | porcentaje
  | доля | процент | prosent | procent | andel | ratio of all | as percent | percentage share
  | percentage shares | percent share | as a proportion | % | % of | % share | in % | as % | which share of
  | which percentage of | how large a share of | what % of
diff diff: difference | difference in | difference of | difference between | how much more | gap
  | how much higher | how much larger | how much bigger | how much greater | gap between | gap in
  | differ | differs | how many more | by how much | difference in the | how different | differenz
  | unterschied | différence | diferencia | разница | forskjell | absolute difference
diff less: how much less | how much lower | how much smaller | how many fewer
change abs: change | changes | changed | absolute change | change in | change of | drop | increase
  | decrease | rise | fall | drop in | increase in | jump | decline | gain | gains | delta | decline in
  | development | rise in | drops | growth in absolute terms | absolute growth | absolute increase
change rel: growth | growth rate | grow | grew | growth in | growth of | percent change
  | percentage change | relative change | percentual change | rate of change | wachstum | croissance
  | crecimiento | percentage growth | percent growth | relative growth | pct change | percentage increase
  | percent increase | percentage decrease | percent decrease | rate of growth | growth rates
  | grown | relative increase | relative difference | percentage difference | percent difference
step year: year over year | year on year | yoy | from year to year | year by year | annual change
  | from one year to the next | from year to the next
step month: month over month | month on month | mom | from month to month | month by month
  | from one month to the next | month to month
step quarter: quarter over quarter | quarter on quarter | qoq
step week: week over week | week on week | wow
step day: day over day | day to day | day on day | from day to day | from one day to the next
  | day by day
cumulative cumulative: cumulative | running total | running sum | cumulative sum | cumulated | cumsum
  | running totals | kumuliert | cumulative total | cumulatively | accumulated | running total of
  | cumulative sum of | year to date | kumulierte | cumulé | acumulado
"""

_LOOKS = """
chart bar: bar chart | bar plot | bar graph | bars | barchart | barplot | column chart | bar
  | bar charts | balkendiagramm | säulendiagramm | bar diagram | diagramme en barres | histogramme en barres
  | gráfico de barras | as bars | bargraph
chart line: line chart | line plot | line graph | as a line | lineplot | linechart | trend | line
  | trend line | liniendiagramm | time series | timeseries | curve | courbe | gráfico de líneas | trends
  | line charts | time series plot | line diagram
chart histogram: histogram | histograms | distribution | distributions | hist | histogramm
  | verteilung | histogramme | histograma | frequency distribution | distribution plot
chart scatter: scatter plot | scatter | scatterplot | scatter chart | scatter graph
  | scatter diagram | streudiagramm | nuage de points | diagrama de dispersión | scattergram | xy plot
chart box: box plot | boxplot | boxplots | box plots | box and whisker plot | box chart | boxes
  | box and whiskers plot | box and whisker | whisker plot | kastengrafik
chart pie: pie chart | pie | pie plot | pie graph | donut chart | kuchendiagramm | tortendiagramm
  | pie diagram | camembert | gráfico circular
chart any: plot | chart | graph | draw | visualise | visualize | diagram | picture | plotted
  | visualization | visualisation | figure | graphically | zeichne | grafik | diagramm | graphique
  | gráfico | plots | charts | graphs | chart of | plot of | graph of | drawn | plotting | график | graf
against against: against | versus | vs | vs. | as a function of | relate to | relates to | related to
  | relation to | relation between | relationship between | relationship with | depend on | depends on
  | gegen | contre | relate | relation | in relation to | on the y axis and:against | compared against
view describe: describe | summary | summarise | summarize | statistics | overview | profile | explore
  | summary statistics | descriptive statistics | stats | description of | description | key figures
  | summary of | quick summary | short summary | basic statistics | summaries | basic stats | five number summary
  | beschreibe | zusammenfassung | décris | describir | resumen | résumé | describe the | summing up
view columns: columns | column names | schema | fields | structure | data types | dtypes | variables
  | names of the columns | names of columns | field names | headers | header | columns and types
  | which columns | what columns | column types | types of the columns | attributes | features
  | spalten | spaltennamen | colonnes | columnas | колонки | kolonner | column headers | headings
view sample: preview | look at | sample | peek | sample rows | random rows | a look at | peek at
  | have a look at | take a look at | glimpse | example rows | random sample | show me some rows
  | a few rows | few rows | some rows | some example rows
view values: distinct values | unique values | different values | values of | values does
  | possible values | distinct | unique | different | what values | which values | value counts
  | distinct values of | unique values of | different values of | categories | levels
  | all values | all the values | list of values | the values of | kinds of | types of | kinds | values
view missing: missing values | missing data | null values | nulls | nans | missing | empty cells
  | empty values | gaps | missing value | missing entries | number of missing values | na values
  | nan values | fehlende werte | valeurs manquantes | valores faltantes | nan | null | nas | blank cells
  | incomplete | missingness | blanks
view correlations: correlations | correlation matrix | correlation table | correlation heatmap
  | all correlations | pairwise correlations
view outliers: outliers | outlier | anomalies | anomaly | unusual values | extreme values | anomalous
  | unusual | ausreißer | unusual rows | anomalous rows | valeurs aberrantes
view span: time span | time range | date range | time period | period covered | range of dates
  | timespan | period of time | range of years | dates covered | what period | which period | zeitraum
  | what dates | which dates | date span | período | période | years covered | time frame | timeframe
  | range of the dates | temporal range | temporal coverage | span
view shape: shape | size of | dimensions | how big | how large | how big is | number of rows and columns
  | how many rows and columns | size | rows and columns | how long is | how many columns and rows
view ncolumns: how many columns | number of columns | how many fields | how many variables
  | how many features | how many attributes | count of columns | column count | number of fields
  | number of variables | number of features | how many spalten | wie viele spalten
  | combien de colonnes | cuántas columnas | сколько колонок | сколько столбцов | hvor mange kolonner
everything everything: every measurement | each measurement | all measurements | all columns
  | all numeric columns | every numeric column | all variables | every variable | all features | each variable
  | each numeric column | every feature | each feature | all the columns | all the measurements | all numbers
  | all numerical columns | every numerical column | all the variables | all numeric variables | each measurement
percolumn percolumn: in each column | per column | each column | by column | for each column | every column
  | in every column | for every column | of each column | in all columns | across columns | column by column
number number: as a number | as number | as a number from 1 to 12 | from 1 to 12 | as an integer
shift 1: the year after | next one | the following year | one year later | a year later | the next year
  | the year afterwards | following year | year later | the year after that | year after
shift -1: the year before | the previous year | one year earlier | a year earlier | year earlier
  | the preceding year | the year before that | previous year | year before
files list: which files | what files | list files | list the files | list my files | my files | show files
  | show the files | show my files | all files | all my files | files do i have | files are there
  | files do you have | what data | which data | data do i have | data is there | data do you have
  | data are there | available files | available data | what datasets | which datasets | list the data
  | list of files | my data | datasets do i have | list all files | welche dateien | quels fichiers
  | qué archivos | какие файлы | what tables | which tables | list the tables | list tables | list datasets
  | hvilke filer | list all my files | files available | data available | the available files | ls
  | what are my files | show me the files | show me my files | show me all files | list the available files
files count: how many files | number of files | count the files | count my files | count of files
  | how many datasets | how many tables | number of tables | number of datasets | wie viele dateien
missing missing: missing | null | nan | na | unknown | empty | blank | not available | undefined
  | not known | not recorded | not given | unspecified | absent | n/a | not specified | not filled
  | not set | fehlt | fehlen | manquant | manquante | manquants | faltante
missing present: known | present | recorded | available | given | filled in | filled | not missing
  | not null | not empty | non missing | non null | not nan | non empty | not blank
"""

_ARITHMETIC = """
op *: times | multiplied by | multiplied with | multiply by | * | × | x | mal
op /: divided by | / | over:/ | ÷ | as a ratio to | geteilt durch
op +: + | added to
op -: minus | less:- | −
ratio /: ratio of | ratio between | ratio | quotient of | verhältnis von | the ratio of
product *: product of
sumof +: sum of:+
"""

_NOUNS = """
row row: row | rows | record | records | entry | entries | line | lines | observation | observations
  | data points | data point | items | item | cases | instances | samples | examples | zeile
  | zeilen | ligne | lignes | fila | filas | строк | строки | строка | rader | rækker | 行 | records are
  | rijen | righe | linhas | tuples | measurements | measurement | readings | reading | occurrences | ones | datasets rows
  | datensätze | enregistrements | registros | записей | poster
person person: people | person | persons | individuals | individual | employees | employee | workers
  | worker | staff members | staff | passengers | passenger | patients | patient | students | student
  | customers | customer | users | user | clients | client | members | member | men and women | personen
  | leute | mitarbeiter | personnes | personas | людей | mennesker | folk | participants | participant
  | respondents | respondent | players | player | pupils | pupil | adults | guests | guest | subjects
  | humans | visitors | visitor | inhabitants:no | colleagues | colleague | teachers | victims | victim
thing thing: cars | car | vehicles | vehicle | flowers | flower | plants | plant | animals | animal | birds | bird
  | houses | house | homes | home | listings | listing | apartments | apartment | flats | products | product
  | orders | order | sales | transactions | transaction | purchases | purchase | payments | payment
  | movies | movie | films | film | books | book | songs | song | games | game | matches | match | events | event
  | trips | trip | flights | flight | rides | ride | visits | visit | loans | loan | accounts | account
  | invoices | invoice | tickets | ticket | posts | post | articles | article | companies | company
  | shops | shop | stores | store | schools | school | tests | test | experiments | experiment | trials | trial
  | properties | property | buildings | building | places | place | stations | station | airports | airport
  | earthquakes | earthquake | storms | storm | accidents | accident | crimes | crime | incidents | incident
  | calls | call | reviews | review | deliveries | delivery | shipments | shipment | wines | wine | bottles
  | meals | meal | dishes | dish | restaurants | hotels | bookings | booking | sessions | session | devices
  | sensors readings | deals | deal | contracts | contract | projects | project | tasks | task | quotes | stocks
"""

_QUESTION = """
which which: which | what | which of the | welche | welcher | welches | quel | quelle | quels | quelles
  | qué | cuál | cuáles | какой | какая | какие | hvilken | hvilket | hvilke | どの | name the | in which | on which
  | at which | in what | on what | for which | from which | for what | what kind of | what type of | which of
  | which one of the | name of the | names of the | what are the | what is the | what's the | what was the
who who: who | whom | wer | qui | quién | quiénes | кто | hvem | 誰
when when: when | at what time | wann | quand | cuándo | когда | når | hvornår | いつ | on which date | on what date
where where: where is:no
"""

_REFUSED = """
refused reason: why | because | cause | caused | causes | reason | reasons | explain | warum | wieso | pourquoi
  | por qué | почему | hvorfor | なぜ | causing | due to | explains | explanation | how come | responsible for
refused forecast: will | predict | prediction | predictions | forecast | forecasts | expected | expect | going to
  | future | next year | next month | next week | tomorrow | prognosis | vorhersage | extrapolate | projection | projected
refused test: significant | significantly | significance | statistically | p value | p values | hypothesis | t test | anova
  | confidence interval | chi square | regression | cluster | clusters | clustering | train | classify
  | machine learning | neural | model | fit | causal | impact of | effect of | influence of | influences
  | principal component | pca | probability | likelihood | chance | odds
refused action: send | email | e mail | mail | upload | download | delete | rename | write | save | export
  | install | buy | order me | call me | post to | share with | notify | remind | translate | create a file
  | overwrite | update the | insert | edit | book me | tweet | slack | print the environment | environment variables
  | rules | password | passwords
refused opinion: should | recommend | better for | think | opinion | believe | good | bad | interesting | advice
  | suggest | worth | important | surprising | funny | joke | poem | story | meaning | mean by | means that
refused unsupported: percent of total per | moving average | rolling | rolling average | weighted | pivot | z score
  | standardize | normalize | normalized | per capita of | harmonic mean | geometric mean | trimmed mean | skewness
  | kurtosis | starts with | start with | starting with | begins with | begin with | ends with | end with | ending with
  | twice | double | triple | half as | almost | nearly | roughly equal | approximately | about half | if | unless
  | while | otherwise | except when | only if | consecutive | in a row | streak | at the same time
  | same as the | majority | minority | most of | times as | times more | below average | above average
  | below the average | above the average | than average | than the average | above the mean | below the mean
  | above the median | below the median | than the mean | than the median | more than the average
  | duplicates | duplicate | duplicated | standard error | cross tab | crosstab | inflation | adjusted
"""

_FILLER = """
filler filler: a | an | the | of | is | are | was | were | be | been | being | do | does | did | has | have | had | having
  | in | on | at | for | with | from | to | into | that | which:no | there | it | its | it's | this | these | those | them
  | they | their | he | she | his | her | me | my | i | i'd | i'm | i've | you | your | we | our | us:no | please | pls | plz
  | show | show me | give | give me | tell | tell me | find | get | compute | calculate | determine | display | print
  | list | what is | what's | what are | what was | what were | how | would | like | could | can | want | need | know
  | to know | to see | see | let | let's | let me | hi | hello | hey | thanks | thank you | thank | ok | okay | so | then | also
  | just | as | any | all | whole | entire | overall | respective | various | given:no | where | whose | such | s | t
  | value | data | dataset | data set | table | file | column | columns of | sheet | spreadsheet | csv | database
  | dataframe | frame | info | information | result | results | answer | in the file | in the data | in the dataset
  | look up | check | say | make | create | produce | build | using | use | based on | regarding | concerning
  | about | considering | looking at | when looking at | among | amongst | within:no | same | here | now | exactly:no
  | new:no | mostly:no | ; | , | . | ? | ! | : | ( | ) | ' | " | ¿ | ¡ | … | · | 、 | 。 | ？ | [ | ] | # | ’ | ` | —
  | load | open the file | read | read the file | i want | i want to | i would like | am | want to know | wonder
  | wondering | interested | curious | quick | quickly | question | one | who:no | must | got | gets | get:no | go | come
  | comes | came | work | works | worked | working | live | lives | lived | living | placed | made | took | taken | takes
  | take | use:no | used | using:no | contain | contains | contained | hold | holds | include:no | exist | exists | happen
  | happened | happens | occur | occurred | occurs | belong | belongs | belonging | located | seen | measured | found | listed
  | recorded:no | show:no | shown | shows | consist | employed | produced | generated | born | sold | bought | ordered | paid
  | earned | spent | stand | sit | available:no | possible | individual:no | actual:no | current | currently | ever | yet
  | numbers:no | figures | amount:no | level:no | per:no | der | die | das | den | dem | des | ein | eine | einen | einer | eines | von | vom
  | im | in den | ist | sind | war | waren | hat | haben | gibt | es | wie | für | mit | zeige | zeig | mir | bitte | aus | am | auf
  | was ist | was | wurde | wurden | le | la | les | un | une | des | du | de | d' | l' | l | est | sont | quelle est | quel est | dans
  | en | pour | avec | donne | moi | montre | sur | aux | el | los | las | una | del | es | son | cuál es | para | con | hay | dame
  | muestra | em | no:no | na:no | и:no | в | во | на | для | из | у | это | покажи | какова | каков | er | hva | hva er | vad | til:no | på
  | det | den | der:no | som | hos | vis | fra:no | av | af | は | の | を | が | に | で | と | も | です | か | ください | 教えて | 何 | では | における
  | し | て | する | what about | how about | hvad | over there | at all | it get | did it get | quite | really | very
  | each other:no | do you | can you | could you | would you | are there | is there | there are | there is | were there
  | was there | how do | how does | how did | how is | how are | how was | how strongly | how much is | how much was
  | strongly | kind | type:no | sort of | something | anything:no | things | stuff | everything | rest:no | so far | each:no
"""

_MONTHS = (
    "january jan januar janvier enero январь январе января janeiro",
    "february feb februar février febrero февраль феврале февраля",
    "march mar märz mars marzo март марте марта",
    "april apr avril abril апрель апреле апреля",
    "may mai mayo май мае мая maj",
    "june jun juni juin junio июнь июне июня",
    "july jul juli juillet julio июль июле июля",
    "august aug août agosto август августе августа",
    "september sep sept septembre septiembre сентябрь сентябре сентября",
    "october oct oktober octobre octubre октябрь октябре октября okt",
    "november nov novembre noviembre ноябрь ноябре ноября",
    "december dec dezember décembre diciembre декабрь декабре декабря desember",
)
MONTHS = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}
_DAYS = (
    "monday mondays mon montag lundi lunes понедельник mandag",
    "tuesday tuesdays tue tues dienstag mardi martes вторник tirsdag",
    "wednesday wednesdays wed mittwoch mercredi miércoles среда onsdag",
    "thursday thursdays thu thurs donnerstag jeudi jueves четверг torsdag",
    "friday fridays fri freitag vendredi viernes пятница fredag",
    "saturday saturdays sat samstag samedi sábado суббота lørdag",
    "sunday sundays sun sonntag dimanche domingo воскресенье søndag",
)
WEEKDAYS = {word: number for number, words in enumerate(_DAYS) for word in words.split()}
SEASONS = {
    "spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11), "fall": (9, 10, 11),
    "winter": (12, 1, 2), "frühling": (3, 4, 5), "sommer": (6, 7, 8), "herbst": (9, 10, 11),
    "été": (6, 7, 8), "hiver": (12, 1, 2), "verano": (6, 7, 8), "invierno": (12, 1, 2),
    "springtime": (3, 4, 5), "summertime": (6, 7, 8), "wintertime": (12, 1, 2),
}  # fmt: skip
NUMBER_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "fifty": 50,
    "hundred": 100, "zero": 0, "dozen": 12,
}  # fmt: skip

DIMENSIONS = {
    "mass": "heavy heavier heaviest weigh weighs weighed light lighter:- lightest:- mass weight",
    "temperature": "hot hotter hottest warm warmer warmest cold:- colder:- coldest:- cool:- cooler:- "
    "coolest:-",
    "age": "old older oldest young:- younger:- youngest:- elderly",
    "height": "tall taller tallest short:- shorter:- shortest:-",
    "length": "long longer longest short:- shorter:- shortest:-",
    "income": "rich richer richest wealthy wealthier wealthiest poor:- poorer:- poorest:- earn earns "
    "earned earning paid",
    "price": "expensive costly pricey pricier priciest cheap:- cheaper:- cheapest:- costs cost "
    "costing costlier costliest",
    "population": "populous populated",
    "speed": "fast faster fastest quick quicker quickest slow:- slower:- slowest:-",
    "area": "spacious large:0",
    "width": "wide wider widest broad narrow:- narrower:- narrowest:-",
    "depth": "deep deeper deepest shallow:- shallower:- shallowest:-",
    "power": "powerful",
    "rain": "wet wetter wettest rainy:0 dry:- drier:- driest:-",
    "wind": "windy windier windiest",
    "rating": "popular:0 rated",
    "distance": "far farther farthest",
}
DIMENSION_COLUMNS = {
    "mass": "mass weight wt gewicht poids peso",
    "temperature": "temperature temp temperatur température",
    "age": "age alter âge edad",
    "height": "height ht größe taille altura",
    "length": "length duration runtime minutes time length_min dauer durée",
    "income": "income salary wage wages earnings pay gdp gdppercap gehalt einkommen compensation",
    "price": "price rent cost fare fee amount_paid unit_price preis prix precio rate msrp",
    "population": "pop population",
    "speed": "speed velocity mph kph",
    "area": "area sqft surface",
    "width": "width",
    "depth": "depth",
    "power": "power horsepower hp",
    "rain": "precipitation rain rainfall prcp",
    "wind": "wind windspeed",
    "rating": "rating score stars",
    "distance": "distance",
}


def _parsed(*blocks: str) -> dict[str, tuple[Sense, ...]]:
    found: dict[str, tuple[Sense, ...]] = {}
    for block in blocks:
        entry = ""
        for line in [*block.strip().splitlines(), "end end: end"]:
            if line.startswith(" ") or not entry:
                entry += " " + line.strip()
                continue
            _add(entry, found)
            entry = line
    return found


def _add(entry: str, found: dict[str, tuple[Sense, ...]]) -> None:
    head, _, phrases = entry.partition(": ")
    kind, detail = head.split()
    for phrase in phrases.split(" | "):
        words, _, other = (
            phrase.strip().rpartition(":") if phrase.strip()[-2:] != ":" else ("", "", "")
        )
        text = words or phrase.strip()
        if words and other == "no":
            continue
        sense = Sense(kind, other if words else detail)
        if sense not in found.get(text, ()):
            found[text] = (*found.get(text, ()), sense)


LEXICON = _parsed(
    _FUNCTIONS, _COMPARATORS, _LOGIC, _TIME, _KEYS, _RANKS, _STEPS, _LOOKS, _ARITHMETIC,
    _NOUNS, _QUESTION, _REFUSED, _FILLER,
)  # fmt: skip
LONGEST = max(len(phrase.split()) for phrase in LEXICON)
"""Senses of phrases, and the number of words of the longest."""
DIMENSION_WORDS: dict[str, tuple[tuple[str, str], ...]] = {}
"""Adjectives and verbs that state a dimension: its name and ``-`` for its lower end."""
for _name, _words in DIMENSIONS.items():
    for _word in _words.split():
        _text, _, _sign = _word.partition(":")
        if _sign != "0":
            DIMENSION_WORDS[_text] = (*DIMENSION_WORDS.get(_text, ()), (_name, _sign or "+"))
