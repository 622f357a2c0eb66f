"""The words that say what the number or name beside them is, in the languages that people write to a chat in.

`NUMBERS` announce an id or a phone number, `PHRASES` a name, a home, a birth date or a secret. The families in `OTHER`
speak of things that belong to nobody (an order, a version). Words of two parts are joined by "_".
"""


def words(listed: str) -> frozenset[str]:
    """The words of a list that is written as prose, because one to a line would hide it."""
    return frozenset(listed.split())


NUMBERS = {  # a family to its words; words of two parts are joined by "_"
    "phone": """phone phones telephone tel tél tlf fone fono telefone telefones telefono teléfono telefon telefonnummer
        telefonnr téléphone telefoon puhelin mobile mobil mobiltelefon cell cellphone cellular celular celulares móvil
        movil handy handynummer gsm whatsapp wapp zap wpp sms fax contact_no contact_number contact_num my_number
        the_number cn_number us_number phoneno phonenumber mobileno mobilenumber contactnumber phone_no mobile_no
        電話 电话 手机 携帯 전화 휴대폰 โทร""",
    "call": """call calling callback dial ring ligue ligar liguem llama llame llamar llámame llámeme appelez appeler rufen
        anrufen chiama chiamare contact contato contacto contatto kontakt recado retorno retornar reach_me text_me
        messages_to answering_at registered urgente recados""",
    "card": """card cards cartão cartao cartões tarjeta carte karte kreditkarte creditcard debitcard cardnumber cc visa
        mastercard amex amexcard maestro pan_number 卡号 カード 카드""",
    "iban": "iban",
    "account": """account_number account_no account_num account_id accountnumber accountno acct account_is conta cuenta
        konto kontonummer poupança corrente bank_account routing_number compte rekening account""",
    "member": """policy_number policy_no policy_id policyid policynumber claim_number claim_id claim_no claimid
        claimnumber member_id membership_number member_number memberid customer_id customer_number client_id passenger_id
        kundennummer apólice apolice póliza""",
    "ssn": "ssn social socialsecurity ss_number itin",
    "cpf": "cpf cpfs",
    "cnpj": "cnpj cnpjs",
    "licence": """license licence driverslicense driverlicense dl cnh habilitação habilitacao motorista führerschein
        fuehrerschein führerscheinnummer permis conducir patente ajokortti patenti prawo_jazdy""",
    "rg": "rg identidade",
    "registration": "matrícula matricula mat ra siape",
    "pis": "pis pasep nis pispasep",
    "titulo": "eleitor eleitoral",
    "cns": "cns sus",
    "ctps": "ctps",
    "lawyer": "oab crm coren crea",
    "record": "prontuário prontuario mrn medical_record patient_id patientid historia_clínica expediente_médico",
    "passport": """passport passports passportnumber passaporte pasaporte passeport passaporto reisepass pass_nr passnummer
        reisepassnummer paszport pasaportu 여권 여권번호 护照 パスポート""",
    "plate": """plate plates licenseplate placa placas kennzeichen plaka plakası targa immatriculation registration_plate
        vehicle_registration number_plate matrícula_del""",
    "nhs": "nhs",
    "nino": "nino national_insurance ni_number",
    "aadhaar": "aadhaar aadhar adhaar uidai uid आधार",
    "pan": "pan pan_card",
    "gst": "gstin gst",
    "voter": "voter epic elector",
    "pesel": "pesel",
    "nif": "nif niss contribuinte",
    "dni": "dni nie nif documento cédula_de ciudadanía",
    "cc": "cartão_de cidadão cidadao",
    "hetu": "hetu henkilötunnus identity_code",
    "personnummer": "personnummer personnr pnr fødselsnummer fodselsnummer fnr cpr kennitala samordningsnummer",
    "bsn": "bsn burgerservicenummer sofinummer",
    "rijksregister": "rijksregisternummer registre_national insz niss rrn",
    "nir": "nir insee sécurité_sociale securite_sociale sécu",
    "fiscal": "fiscale codice_fiscale codicefiscale",
    "steuer": """steuer steuerid steueridentifikationsnummer idnr steuernummer steueridnr tin tax_id taxid tax_number
        steuer_id fiscal_number""",
    "rente": "rvnr rentenversicherungsnummer sozialversicherungsnummer sozialversicherung versicherungsnummer svnr",
    "kasse": "kvnr krankenkasse krankenversicherung krankenversichertennummer krankenversicherungsnummer",
    "ausweis": "ausweis personalausweis ausweisnummer personalausweisnummer identitätskarte",
    "sin": "sin social_insurance nas",
    "tfn": "tfn tax_file",
    "medicare": "medicare mbi",
    "abn": "abn business_number acn company_number",
    "npi": "npi provider_identifier",
    "rrn": "rrn 주민등록번호 주민번호 외국인등록번호 frn",
    "thai": "thai บัตรประชาชน เลขประจำตัวประชาชน เลขบัตรประชาชน",
    "kimlik": "kimlik tckn tc turkish",
    "za": "rsa sa_id refugee za_id",
    "nin": "nin",
    "cuit": "cuit cuil",
    "rut": "rut run",
    "curp": "curp rfc",
    "cedula": "cedula cédula nit",
    "ahv": "ahv avs ahv_nummer ahvnummer",
    "oib": "oib jmbg emso emšo cnp egn amka rodné taj rodne",
    "chinese": "身份证 身分證 身份证号",
    "japanese": "マイナンバー 個人番号 mynumber my_number_card",
    "nric": "nric fin mykad ic_number nik ktp cnic hkid",
    "identity": """identity identification identificação identificación identificação_nacional national_id id_card
        id_number identifiant citizen personal_id ausweisnr dowód dokument identity_card idcard id_no 身份""",
    "crypto": "wallet bitcoin btc ethereum",
    "mac": "mac hardware ethernet physical",
    "ip": "ip ipv4 ipv6 client_ip ipaddress",
    "email": "email emails mail e_mail emailis emailid mailid correo",
    "other": """order orders orden invoice ticket tickets tracking case reference ref version release epoch timestamp price
        total amount score points booking confirmation reservation flight pedido pedidos fatura factura nota protocolo
        processo proceso processos código codigo codice barras barcode sku isbn ean sha commit build room lei decreto portaria
        resolução protocol process serial product item transaction txn shipment parcel package receipt rechnung bestellung
        commande facture ordine chamado solicitação boleto coordinates lat lon latitude longitude created updated
        order_id session_id request_id transaction_id seq port pid line revenue population usd eur krw jpy
        inscrição incident article acórdão zip postcode cep postal plz size qty quantity sample model""",
    "office": """ouvidoria institucional central sac atendimento customer_service helpline hotline switchboard
        call_center callcenter secretaria kundenservice""",
}

OTHER = frozenset({"other", "office"})

PHRASES = {
    "name": """name names name's nome nombre nom chamo chama chamada chamado chamar llamo llama appelle heiße heisse chiamo
        heter navn nazywam heet naam surname sobrenome apellido apellidos nachname vorname fullname firstname lastname
        givenname familyname passengername customername cardholdername identificou""",
    "title": """mr mrs ms miss mx dr dra drs sr sra srta sres herr frau monsieur madame mme mlle doña señor señora senhor senhora
        signor signora sig""",
    "label": """passenger customer guest client patient cardholder holder contact attn beneficiary cliente requerente solicitante
        interessado contato paciente titular beneficiário beneficiária responsável legal testemunha declarante vítima
        denunciante comparecer contacto kunde ansprechpartner traveler traveller applicant""",
    "role": """i_am i_m this_is speak_to speak_with ask_for behalf_of signed_by name_of regards sincerely cheers thanks
        atenciosamente cordialmente saludos falar_com ligar_para ligue_para contato_com contate atender paciente servidor
        servidora aluno aluna denunciante testemunha vítima responsável beneficiário beneficiária requerente criança professor
        professora diretor diretora morador moradora filho filha assinada_por assinado_por por_nome cidadão cidadã
        hablar_con soy je_suis ich_bin traveling_with travelling_with passenger guest patient titular""",
    "home": """address addresses addr live lives living reside resides residing moved endereço endereco resido residente moro mora
        morador moradora residência residencia casa_fica domiciliado domiciliada dirección direccion vivo domicilio habite
        adresse wohne wohnhaft abito indirizzo street addressline streetaddress logradouro ship_to deliver_to shipped_to
        delivered_to""",
    "birth": """birth birthdate birthday born dob nascimento nascido nascida nasci nacimiento nacido nacida nací naissance née né
        geboren geburtsdatum geburtstag nascita nato nata syntynyt urodzony urodzona dateofbirth 出生 生日""",
    "password": """password passwd passcode passphrase pwd senha contraseña contrasena passwort kennwort mot_de_passe de_passe hasło
        wachtwoord lösenord pin cvv cvc security_code""",
    "key": """api_key apikey secret_key access_key access_token accesstoken auth_token client_secret private_key secret_token
        refresh_token bearer""",
    "user": """username user_name login login_name screen_name usuário usuario benutzername utilizador""",
}
QUIET = frozenset(
    {"role", "label", "home", "birth"}
)  # what they announce bears a mark of its own: capitals, a colon, digits

FILLERS = words("""number numbers num no nr nº n id ids code is are was the a my your his her as of at on to é e es est ist sob do da de del
    der la le el o um uma número numero numéro nummer número_de para com for and or y und with its it s d os meu minha mi
    mio il lautet me us him us here please have has new old up back again now corrente poupança pessoal personal key
    chave pix value card account institucional médico medico sp rj mg df bancária bank banco account_number mobile phone cell home work office
    main primary this that will be final ending sms text ou in em nas um por favor""")
