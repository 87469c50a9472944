"""Code that models write because they know pandas, Counter and statistics runs over the records as it does in Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cascade_memory.evaluation.environments.hospital.rounds import Records
from cascade_memory.evaluation.environments.hospital.synthetic import build_hospital


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Records]:
    with Records(build_hospital(tmp_path_factory.mktemp("hospital") / "hospital.sqlite", patients=12)) as records:
        yield records


def by_sql(records: Records, query: str) -> str:
    return records.run(f"answer = SQLInterpreter({query!r})[0][0]").text


@pytest.mark.parametrize(
    ("code", "query"),
    [
        ("t['GENDER'].iloc[0]", "SELECT GENDER FROM patients LIMIT 1"),
        ("t.iloc[0]['GENDER']", "SELECT GENDER FROM patients LIMIT 1"),
        ("t.iloc[0].GENDER", "SELECT GENDER FROM patients LIMIT 1"),
        ("t['GENDER'].values[0]", "SELECT GENDER FROM patients LIMIT 1"),
        ("t.GENDER.tolist()[0]", "SELECT GENDER FROM patients LIMIT 1"),
        ("t['GENDER'].nunique()", "SELECT count(DISTINCT GENDER) FROM patients"),
        ("len(t['GENDER'].unique())", "SELECT count(DISTINCT GENDER) FROM patients"),
        ("len(t[t['GENDER'] == 'm'])", "SELECT count(*) FROM patients WHERE GENDER = 'm'"),
        ("t[(t['GENDER'] == 'm') & (t['SUBJECT_ID'] > 0)].shape[0]", "SELECT count(*) FROM patients WHERE GENDER = 'm'"),
        ("t[~(t['GENDER'] == 'm')].shape[0]", "SELECT count(*) FROM patients WHERE GENDER <> 'm'"),
        ("t.loc[t['GENDER'] == 'm', 'SUBJECT_ID'].max()", "SELECT max(SUBJECT_ID) FROM patients WHERE GENDER = 'm'"),
        ("t.sort_values('SUBJECT_ID', ascending=False)['SUBJECT_ID'].iloc[0]", "SELECT max(SUBJECT_ID) FROM patients"),
        ("t.sort_values(by='SUBJECT_ID').head(1)['SUBJECT_ID'].item()", "SELECT min(SUBJECT_ID) FROM patients"),
        ("t.groupby('GENDER')['SUBJECT_ID'].count()['m']", "SELECT count(*) FROM patients WHERE GENDER = 'm'"),
        ("t['GENDER'].value_counts().to_dict()['m']", "SELECT count(*) FROM patients WHERE GENDER = 'm'"),
        ("sum(1 for _, row in t.iterrows() if row['GENDER'] == 'm')", "SELECT count(*) FROM patients WHERE GENDER = 'm'"),
        ("t[t['GENDER'].isin(['m'])]['SUBJECT_ID'].sum()", "SELECT sum(SUBJECT_ID) FROM patients WHERE GENDER = 'm'"),
        ("t[t['DOD'].isna()].shape[0]", "SELECT count(*) FROM patients WHERE DOD IS NULL"),
        ("len(t.drop_duplicates('GENDER'))", "SELECT count(DISTINCT GENDER) FROM patients"),
        ("t['DOB'].str.startswith('2').any() and len(t) or len(t)", "SELECT count(*) FROM patients"),
    ],
)
def test_a_table_does_what_a_frame_of_pandas_does(code: str, query: str, records: Records):
    ran = records.run(f"t = LoadDB('patients')\nanswer = {code}")
    assert (ran.succeeded, ran.text) == (True, by_sql(records, query))


@pytest.mark.parametrize(
    ("code", "gives"),
    [
        ("from collections import Counter\nanswer = Counter('aab').most_common(1)[0][0]", "a"),
        ("import collections\nanswer = collections.Counter('abb').most_common()[0]", "('b', 2)"),
        ("import statistics\nanswer = statistics.mode([1, 2, 2])", "2"),
        ("from statistics import median\nanswer = median([3, 1, 2])", "2"),
        ("answer = 1\nif __name__ == '__main__':\n    answer = 2", "2"),
        ("def main():\n    return 7\nif __name__ == '__main__':\n    answer = main()", "7"),
        ("answer = len(FilterDB(DATABASE=LoadDB('patients'), CONDITIONS=['GENDER=m', 'SUBJECT_ID>0'])) > 0", "True"),
        ("answer = 0 < len(LoadDB('patients')) < 10**6", "True"),
    ],
)
def test_what_the_prompt_offers_works(code: str, gives: str, records: Records):
    ran = records.run(code)
    assert (ran.succeeded, ran.text) == (True, gives)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("t = LoadDB('patients')\nif t['GENDER'] == 'm':\n    answer = 1", "a truth for each row: use .any() or .all()"),
        ("t = LoadDB('patients')\nanswer = GetValue(t[t['GENDER'] == 'm'], 'DOB')", "choose them with FilterDB"),
        ("answer = LoadDB('patients').AGE", "it has columns, drop_duplicates"),
        ("t = LoadDB('patients')\nt['GENDER'] = 1\nanswer = 1", "TypeError"),
        ("answer = __name__.__class__", 'attributes that begin with "_"'),
        ("answer = __builtins__", 'names that begin with "__"'),
    ],
)
def test_what_does_not_work_says_why(code: str, says: str, records: Records):
    ran = records.run(code)
    assert not ran.succeeded
    assert says in ran.text
