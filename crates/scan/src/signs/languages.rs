//! The same signs in German, French, Spanish, Portuguese, Italian, Russian and Chinese.

use std::sync::LazyLock;

use crate::{lexicon::Lexicon, passage::Passage, phrase::Word};

use super::Signs;

macro_rules! lexicon {
    ($name:ident: $words:literal) => {
        static $name: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new($words));
    };
}

lexicon! { NEGATIONS:
    "nicht nichts kein keine keinen keinem nie niemals ohne ne n'en n'est n'a pas jamais rien sans aucun aucune inutile no nunca \
     jamás sin ningún ninguna não nao sem nenhum nenhuma jamais non mai senza nessun nessuna не ни без никогда нет ничего"
}

lexicon! { TELLS:
    "sag* erwähn* nenn* mitteil* informier* verrat* bericht* erläuter* benachrichtig* sprich* sprech* thematisier* erfahr* erfähr* \
     wissen weiß unerwähnt erklär* dis dites dire mentionn* parl* expliqu* inform* signal* préven* prévien* révél* évoqu* averti* sache savoir \
     digas diga decir menci* habl* expli* avis* revel* coment* cuent* notifi* sepa saber dizer fale falar conte contar \
     saiba dica menzion* spieg* avvis* rivel* говор* сообща* упомина* упомяну* показыва* расскаж* рассказыва* объясня* \
     уведомл* предупрежда* раскрыва* знать комментир*"
}

lexicon! { ASKS:
    "frag* bitte bitten erfrag* verlang* forder* anforder* hol* lass peça peca peçam pergunt* solicit* pede pedir exij* colet* obtenh* \
     pide pida pidan pregunt* obten* exig* recopil* demand* réclam* sollicit* obtien* recueill* chiedi chieda chiedere richied* \
     попрос* спрос* запрос* узнай потребуй*"
}

// Secrets that are grave by themselves.
lexicon! { GRAVE_SECRETS:
    "passwort passworts kennwort kennworts passwörter kennwörter wiederherstellungscode* wiederherstellungsphrase* sicherungscode* \
     bestätigungscode* tan pin cvv contraseña contraseñas senha senhas password пароль пароля пароли паролей пинкод*"
}

lexicon! { CODES:
    "code codes código códigos codigo codigos codice codici frase frases phrase phrases palabras palavras parole clave claves chave \
     chaves clé clés chiave chiavi mot mots número numero numéro numer* код коды кода фраз* ключ* номер слов* schlüssel wörter"
}

lexicon! { CODE_KINDS:
    "recuperação recuperacao recuperación recuperacion récupération recupero secours backup respaldo verificação verificación \
     vérification verifica sms privada privadas privée privées privata private privaten semente semilla secreta secrète mnemônica \
     passe cartão tarjeta carte carta восстановлен* подтвержден* резервн* приватн* закрыт* секретн* карты sim"
}

lexicon! { SENDS:
    "send* schick* übermittl* übertrag* hochlad* lade weiterleit* leite poste trag* einreich* lädst gib envo* transm* téléverse* \
     publi* dépos* soum* saisi* envi* envía* sube subir reenví* reenvi* introdu* registr* submet* preench* encaminh* \
     carreg* inser* insir* invi* inoltr* caric* отправ* загру* перешл* выгру* передай* введи* внеси* опублику*"
}

lexicon! { PRIVATE_DATA:
    "lebenslauf* vertrag* kundendat* kundenlist* gespräch* verlauf rechnung* dokument* patient* contrat* client* conversation* \
     historique document* contrato* cliente* historial paciente* conversaci* currículo* curriculo* contratt* договор* документ* \
     клиент* переписк* резюме истори* данные"
}

lexicon! { WHOLE:
    "vollständig* gesamt* komplett* alle ganze ganzen complet* entier* intégral* tous toutes todo toda todos todas inteiro inteira \
     complet* integral intero intera tutto tutti целиком полностью весь всю все"
}

const CHINESE_NEGATIONS: [&str; 11] =
    ["不要", "无需", "不必", "不需要", "不用", "勿", "不得", "别", "切勿", "没必要", "不应"];
const CHINESE_TELLS: [&str; 18] = [
    "告诉", "告知", "提及", "提到", "说明", "解释", "透露", "通知", "汇报", "提醒", "声张", "披露",
    "知晓", "知道", "显示", "展示", "写进", "写入总结",
];
const CHINESE_ASKS: [&str; 10] = [
    "让用户", "请用户", "要求用户", "询问用户", "向用户", "引导用户", "索要", "索取", "请对方",
    "让对方",
];
const CHINESE_GRAVE: [&str; 14] = [
    "密码", "助记词", "私钥", "恢复码", "备用码", "验证码", "恢复短语", "银行卡号", "身份证号",
    "口令", "支付密码", "安全码", "密钥", "登录凭证",
];
const CHINESE_SENDS: [&str; 12] = [
    "上传", "发送", "提交", "传到", "推送", "回传", "转发", "填入", "发到", "发给", "写入到",
    "同步到",
];
const CHINESE_DATA: [&str; 20] = [
    "姓名", "电话", "身份证", "住址", "地址", "手机", "银行卡", "简历", "合同", "客户", "病历",
    "照片", "聊天记录", "源码", "源代码", "文件内容", "原文", "邮箱", "名单", "全文",
];

/// Whether the passage says to send something, without a negation.
pub(super) fn sends(passage: &Passage<'_>) -> bool {
    let words = &passage.words;
    let denied = |at: usize| {
        let near = words[at.saturating_sub(3)..(at + 3).min(words.len())].iter();
        near.into_iter().any(|word| NEGATIONS.contains(&word.text))
    };
    SENDS.places(words).into_iter().any(|at| !denied(at))
        || CHINESE_SENDS.iter().any(|one| passage.text.contains(one))
}

pub(super) fn add_signs(passage: &Passage<'_>, signs: &mut Signs) {
    if !passage.text.is_ascii() {
        add_chinese_signs(passage.text, signs);
    }
    let words = &passage.words;
    let sends_at = SENDS.places(words);
    let asks = ASKS.places(words);
    let grave = grave_secrets(words);
    signs.add_if(keeps_quiet(passage), Signs::UNSPOKEN);
    if asks.is_empty() && sends_at.is_empty() && grave.is_empty() {
        return;
    }
    let is_denied = |at: usize, to: usize| {
        let near = words[at.saturating_sub(3)..to.min(words.len())].iter();
        near.into_iter().any(|word| NEGATIONS.contains(&word.text))
    };
    signs.add_if(!sends_at.is_empty() && sends(passage), Signs::SENDS);
    signs.add_if(!grave.is_empty(), Signs::SECRET);
    let asked = asks.iter().any(|at| {
        let mut asked = grave.iter().filter(|secret| (*at..*at + 16).contains(*secret));
        asked.any(|secret| !is_denied(*at, *secret))
    });
    signs.add_if(asked, Signs::ASKS_SECRET);
    let private = !PRIVATE_DATA.places(words).is_empty();
    signs.add_if(private, Signs::DATA);
    signs.add_if(private, Signs::PRIVATE);
    signs.add_if(!WHOLE.places(words).is_empty(), Signs::EVERYTHING);
}

/// The places of grave secrets: a word for one, or `code` next to `recovery`.
fn grave_secrets(words: &[Word]) -> Vec<usize> {
    let mut found = GRAVE_SECRETS.places(words);
    found.extend(CODES.places(words).into_iter().filter(|at| {
        let near = words[*at..].iter().take(4).chain(&words[at.saturating_sub(2)..*at]);
        near.into_iter().any(|word| CODE_KINDS.contains(&word.text))
    }));
    found
}

/// Whether a verb of telling stands near a negation, in one sentence.
fn keeps_quiet(passage: &Passage<'_>) -> bool {
    let words = &passage.words;
    let tells = TELLS.places(words);
    if tells.is_empty() {
        return false;
    }
    let negations = NEGATIONS.places(words);
    tells.into_iter().any(|at| {
        negations.iter().any(|no| {
            let (first, last) = (at.min(*no), at.max(*no));
            last - first <= 6 && last > first && {
                let between = &passage.text[words[first].span.start..words[last].span.end];
                !between.contains(['.', ';', '\n', '?', '!', '|', '"'])
            }
        })
    })
}

/// Chinese has no blanks, so the text itself is searched.
fn add_chinese_signs(text: &str, signs: &mut Signs) {
    let has = |any: &[&str]| any.iter().any(|one| text.contains(one));
    signs.add_if(chinese_keeps_quiet(text), Signs::UNSPOKEN);
    signs.add_if(has(&CHINESE_SENDS), Signs::SENDS);
    let secret = has(&CHINESE_GRAVE);
    signs.add_if(secret, Signs::SECRET);
    let private = has(&CHINESE_DATA);
    signs.add_if(private, Signs::DATA);
    signs.add_if(private, Signs::PRIVATE);
    signs.add_if(has(&["全部", "所有", "整个", "完整", "全文", "原文"]), Signs::EVERYTHING);
    let asks = CHINESE_ASKS.iter().any(|ask| {
        text.match_indices(ask).any(|(at, _)| {
            let before = text[..at].chars().rev().take(4).collect::<String>();
            let before: String = before.chars().rev().collect();
            let denied = CHINESE_NEGATIONS.iter().any(|no| before.contains(no));
            let after: String = text[at..].chars().take(30).collect();
            let sentence = after.split(['。', ';', '\n', '!']).next().unwrap_or_default();
            !denied && CHINESE_GRAVE.iter().any(|secret| sentence.contains(secret))
        })
    });
    signs.add_if(asks, Signs::ASKS_SECRET);
}

/// Whether a verb of telling follows a negation within a few characters.
fn chinese_keeps_quiet(text: &str) -> bool {
    const NEAR: usize = 10;
    CHINESE_NEGATIONS.iter().any(|no| {
        text.match_indices(no).any(|(at, _)| {
            let after: String = text[at + no.len()..].chars().take(NEAR).collect();
            let clause = after.split(['。', ',', ';', '\n', '、']).next().unwrap_or_default();
            CHINESE_TELLS.iter().any(|tell| clause.contains(tell))
        })
    })
}
