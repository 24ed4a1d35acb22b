"""Names of months and weekdays in several languages, with their places in the calendar."""

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
    "thursday thursdays thu thur thurs donnerstag jeudi jueves четверг torsdag",
    "friday fridays fri freitag vendredi viernes пятница fredag",
    "saturday saturdays sat samstag samedi sábado суббота lørdag",
    "sunday sundays sun sonntag dimanche domingo воскресенье søndag",
)
WEEKDAYS = {word: number for number, words in enumerate(_DAYS) for word in words.split()}
